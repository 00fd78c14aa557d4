// Programs of many kinds read a file that comes in pieces: the same output as from the whole file. One that trusts the
// size of a file that still grows is reported, never silently wrong.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { hasCommand, rule, skip, start, step, withWorkflow, trapped } from './harness.ts'

const plan = [
  step(0, 'S', '1'),
  step(1, 'Q', '1'),
  rule('file', 'grow.*', '0', 'on_close:1', 'no_update'),
  rule('file', 'whole.*', '0', 'on_close:1', 'update'),
]

const readers: [needs: string, make: string, use: string][] = [
  ['cat', 'seq 60000', 'cat IN | md5sum; wc IN; head -n 3 IN; tail -n 2 IN; cut -c1-2 IN | sort -u | md5sum'],
  [
    'sort',
    'seq 60000',
    'sort -rn < IN | md5sum; sort -c -n IN; uniq IN | tail -n 1; split -n 3 IN x; cat xa* | cmp - IN; cmp IN IN',
  ],
  [
    'tar',
    'tar c -C /usr/include linux',
    'tar tf IN | md5sum; tar xf IN; find linux -type f | wc -l; tar xOf IN linux/types.h | md5sum',
  ],
  ['gzip', 'gzip -nc < /usr/bin/git', 'gzip -t IN && gzip -dc IN | md5sum; zcat < IN | wc -c'],
  [
    'awk',
    'seq 30000',
    `awk '{ s += $1 } END { print s, NR }' IN; awk 'BEGIN { while ((getline l < "IN") > 0) n++; print n }'`,
  ],
  [
    'sed',
    'seq 30000',
    'sed -n "29999p" IN; sed s/9/x/ IN | md5sum; grep -c 7 IN; grep -n 29998 IN; tr 1 2 < IN | md5sum; od -c IN | tail -n 1',
  ],
  [
    'perl',
    'seq 30000',
    `perl -ne '$n += $_; END { print "$n\\n" }' IN; perl -e 'open F, "IN"; local $/; $t = <F>; print length $t, "\\n"; seek F, -6, 2; print <F>'`,
  ],
  [
    'python3',
    'seq 30000',
    `python3 -c '
import hashlib
print(sum(int(l) for l in open("IN"))); print(len(open("IN","rb").read())); f=open("IN","rb"); f.seek(0,2); print(f.tell()); f.seek(-3,2); print(f.read())
print(hashlib.file_digest(open("IN","rb"),"md5").hexdigest() if hasattr(hashlib,"file_digest") else hashlib.md5(open("IN","rb").read()).hexdigest())'`,
  ],
  [
    'node',
    'seq 30000',
    `node -e 'const fs=require("fs"); const n=[]; fs.createReadStream("IN").on("data",b=>n.push(b.length)).on("end",()=>console.log(n.reduce((a,b)=>a+b)));require("readline").createInterface({input:fs.createReadStream("IN")}).on("line",()=>{}).on("close",()=>console.log("lines"))' | sort`,
  ],
  [
    'gcc',
    'echo "int a;"; seq -f "int v%g;" 5000; echo "int main(void){return v5000;}"',
    'gcc -x c -fsyntax-only IN && gcc -x c -O0 IN -o prog && ./prog; echo $?; rm -f prog',
  ],
  [
    'sqlite3',
    'printf "create table t(a);\\n"; seq -f "insert into t values(%g);" 300',
    'sqlite3 :memory: ".read IN" "select count(*), sum(a) from t"; sqlite3 mem.db < IN; sqlite3 mem.db "select max(a) from t"',
  ],
  [
    'git',
    'seq 30000',
    'git hash-object IN; git hash-object --stdin < IN; git diff --no-index --stat /dev/null IN | tail -n 1',
  ],
]

for (const [needs, make, use] of readers)
  for (const kind of ['grow', 'whole'])
    test(
      `${needs} reads a file that comes in pieces (${kind})`,
      { skip: skip || (hasCommand(needs) ? false : `${needs} is not installed`), timeout: 240_000 },
      async () => {
        const plain = mkdtempSync('/dev/shm/millrace-test-')
        try {
          const script = use.replaceAll('IN', `${kind}.c`)
          const all = `(${make}) > ${kind}.c; ${script}`
          const expected = await start('bash', ['-c', all], { cwd: plain }).done
          await withWorkflow(plan, async workflow => {
            const at = { cwd: workflow.dir, limit: 40_000 }
            const consumer = workflow.preloaded('Q', 'bash', ['-c', script], {
              ...at,
              env: { LD_PRELOAD: trapped() },
            })
            const pieces = `(${make}) > all; n=$(stat -c %s all); (for i in 0 1 2 3 4 5; do tail -c +$((i * n / 6 + 1)) all | head -c $(((i + 1) * n / 6 - i * n / 6)); sleep 0.02; done) > ${kind}.c`
            const producer = workflow.preloaded('S', 'bash', ['-c', pieces], at)
            const [seen, made] = await Promise.all([consumer.done, producer.done])
            assert.equal(made.code, 0, made.stderr)
            const reported = workflow.ps().some(line => line['kind'] === 'trusted')
            if (reported && kind === 'grow') return
            assert.deepEqual(
              [seen.code, seen.stdout, seen.stderr],
              [expected.code, expected.stdout, expected.stderr],
            )
          })
        } finally {
          rmSync(join(plain), { recursive: true, force: true })
        }
      },
    )
