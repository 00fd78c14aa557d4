import { render } from 'preact'
import { App } from './app.tsx'
import './app.css'
import { ComparePage } from './compare.tsx'
import { insideData, ReportSource } from './report-source.ts'
import { Report } from './report.tsx'
import { ServerSource, type Source } from './source.ts'
import { Store, StoreContext } from './store.ts'
import { applyTheme } from './theme.ts'

applyTheme()
// Paper is white, whatever the screen is.
window.addEventListener('beforeprint', () => applyTheme('light'))
window.addEventListener('afterprint', () => applyTheme())
const root = document.getElementById('app')
const inside = insideData()

function show(source: Source, page: preact.JSX.Element): void {
  if (root) render(<StoreContext.Provider value={new Store(source)}>{page}</StoreContext.Provider>, root)
}

if (inside === null) show(new ServerSource(), <App />)
else {
  void inside.then(data => {
    if ('comparison' in data) {
      document.title = 'Two runs · Millrace'
      if (root) render(<ComparePage comparison={data.comparison} />, root)
    } else show(new ReportSource(data), <Report merged={data.merged} />)
  })
}
