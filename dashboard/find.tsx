import { useEffect, useState } from 'preact/hooks'
import type { FoundTask } from '../src/report/dashboard/protocol.ts'
import { STATE_SHAPES, STATE_WORDS } from './colours.ts'
import { openTask } from './hash.ts'
import { useStore } from './store.ts'

/** Finds tasks by number, name, file or `state:failed`. */
export function Find(): preact.JSX.Element {
  const { source } = useStore()
  const [query, setQuery] = useState('')
  const [found, setFound] = useState<FoundTask[]>([])
  useEffect(() => {
    if (query.trim() === '') {
      setFound([])
      return
    }
    let isLate = false
    const timer = setTimeout(() => {
      source.find(query).then(
        tasks => (isLate ? undefined : setFound(tasks)),
        () => {},
      )
    }, 150)
    return () => {
      isLate = true
      clearTimeout(timer)
    }
  }, [query])
  const choose = (task: number): void => {
    openTask(task)
    setQuery('')
  }
  return (
    <form
      class="find"
      role="search"
      onSubmit={event => {
        event.preventDefault()
        if (found[0]) choose(found[0].task)
      }}
    >
      <input
        id="find"
        type="search"
        placeholder="Find a task"
        aria-label="Find a task by number, name, file or state:failed"
        autocomplete="off"
        spellcheck={false}
        value={query}
        onInput={event => setQuery(event.currentTarget.value)}
        onKeyDown={event => {
          if (event.key === 'Escape') setQuery('')
        }}
      />
      {query.trim() === '' ? null : (
        <div class="found">
          {found.length === 0 ? <p>no task</p> : null}
          <ul>
            {found.slice(0, 12).map(({ task, name, state }) => (
              <li key={task}>
                <button type="button" onClick={() => choose(task)}>
                  <span class={`shape ${state}`} aria-hidden="true">
                    {STATE_SHAPES[state]}
                  </span>
                  <span class="name">{name}</span> <small>{STATE_WORDS[state]}</small>
                </button>
              </li>
            ))}
          </ul>
        </div>
      )}
    </form>
  )
}
