import { useEffect, useState } from 'preact/hooks'

/** The view and the task that are shown. They are in the address, so that a link leads to them. */
export interface Place {
  view: string
  task: number | null
}

function read(): Place {
  const [view = '', query = ''] = location.hash.slice(1).split('?')
  const task = new URLSearchParams(query).get('task')
  return { view: view || 'overview', task: task === null || !/^\d+$/.test(task) ? null : Number(task) }
}

export const hashOf = ({ view, task }: Place): string => `#${view}${task === null ? '' : `?task=${task}`}`

export function goTo(change: Partial<Place>): void {
  location.hash = hashOf({ ...read(), ...change })
}

/** Opens the panel of a task. */
export const openTask = (task: number): void => goTo({ task })

export function useHash(): [Place, (change: Partial<Place>) => void] {
  const [place, setPlace] = useState(read)
  useEffect(() => {
    const update = (): void => setPlace(read())
    window.addEventListener('hashchange', update)
    return () => window.removeEventListener('hashchange', update)
  }, [])
  return [place, goTo]
}
