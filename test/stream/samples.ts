/** The workflow of the paper, with the brackets that JSON needs. */
export const PAPER = `{ "name": "WF",
  "IO_Graph": [
    { "name": "appA",
      "output_stream": { "group_name": "group0", "files": ["file_A.dat", "file_B.dat"] },
      "streaming": [
        { "name": "file_A.dat", "committed": "on_close:3", "mode": "no_update" },
        { "name": "file_B.dat", "committed": "file_A.dat", "mode": "update" } ] },
    { "name": "appB",
      "output_stream": ["file_C.dat", "dir"],
      "streaming": [
        { "name": "file_C.dat", "committed": "on_termination", "mode": "update" },
        { "name": "dir", "type": "d", "nfiles": 100, "committed": "on_close", "mode": "no_update" },
        { "name": "dir/file_D.dat", "committed": "on_close", "mode": "update" } ] },
    { "name": "appC", "input_stream": ["group0", "dir", "file_C.dat"] }
  ],
  "permanent": ["dir/*", "file_C.dat"],
  "home_node": { "files": ["group0", "file_C.dat"], "node": "appC" } }`

export const TODAY = `{ "version": 1.1, "name": "today",
  "aliases": [ { "group_name": "parts", "files": ["p{1,2}.dat"] } ],
  "IO_Graph": [
    { "name": "writer", "output_stream": ["parts", "log.txt", "d1", "d2"],
      "streaming": [
        { "name": ["parts"], "committed": "on_close:2" },
        { "dirname": ["d1"], "committed": "on_n_files", "n_files": 3, "mode": "no_update" },
        { "dirname": ["d2"], "committed": "on_file", "file_deps": ["log.txt"] } ] },
    { "name": "reader", "input_stream": ["parts", "d1", "d2", "log.txt", "raw.csv"] }
  ],
  "permanent": ["d2"], "exclude": ["*.tmp"],
  "storage": { "memory": ["d1"], "fs": ["log.txt"] },
  "home_node_policies": { "create": ["d1"], "hashing": ["d2"],
    "manual": [ { "name": ["parts"], "app_node": "reader:2" } ] } }`

/** A configuration with one thing in it that is wrong; `at` is where the text `here` begins. */
export const step = (extra: string, output = '"f", "g", "d"'): string =>
  `{ "name": "w", "IO_Graph": [\n {"name": "a", "output_stream": [${output}], "streaming": [\n${extra}\n]},\n {"name": "b", "input_stream": ["f","g","d"]}] }`
export const top = (extra: string): string =>
  `{ "name": "w", "IO_Graph": [{"name": "a", "output_stream": ["f", "g"]}, {"name": "b", "input_stream": ["f", "g"]}],\n${extra} }`
