// A reporter of Node's test runner: the file of each test that failed, one per line.
export default async function* failedFiles(events) {
  for await (const { type, data } of events) {
    if (type !== 'test:fail' || data.file === undefined) continue
    // Tests marked as todo do not fail the run.
    if (data.todo === undefined) yield `${data.file}\n`
  }
}
