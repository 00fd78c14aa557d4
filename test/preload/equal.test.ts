// Programs run plain and under the library: the same output, exit code and files, where the library has
// nothing to say (outside), inside the managed directory on plain files, and as the producer of governed ones.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { hasCommand, rule, skip, start, step, tools, Workflow } from './harness.ts'

const programs: [needs: string, name: string, script: string][] = [
  ['ls', 'ls', 'ls -la --time-style=+ /usr/include | tail -n +3; ls /nowhere'],
  [
    'tar',
    'tar',
    'tar cf x.tar -C /usr/include linux && tar tf x.tar | wc -l; tar xf x.tar; ls linux | wc -l; rm x.tar',
  ],
  [
    'sort',
    'sort',
    'seq 1 60000 | sort -R --random-source=/bin/sh | sort -n > o; md5sum < o; sort -S 1M -T . -r o | md5sum',
  ],
  ['gzip', 'gzip', 'gzip -nc /bin/sh > g.gz; gunzip -c g.gz | md5sum; gzip -t g.gz; gzip -t /bin/sh'],
  [
    'cp',
    'cp, mv, ln, rm',
    'cp -r /usr/include/linux l; find l | sort | md5sum; mv l k; cp k/types.h a; ln a b; ln -s a c; cat c; rm -rf k; rmdir k; touch -d @0 w; mkdir -p q/r; ls -R',
  ],
  [
    'dd',
    'dd, truncate, split',
    'dd if=/bin/sh of=o bs=1000 count=50 2>/dev/null; truncate -s 20000 o; split -b 3000 o part; cat part* | cmp - o; wc -c o; tail -c 10 o | od -c; head -c 5 o | od -c',
  ],
  [
    'awk',
    'awk',
    'awk \'BEGIN{while((getline l < "/etc/passwd")>0)n++; print n; "echo x"|getline d; print d; print "y" > "f"; close("f"); getline z < "f"; print z; exit system("exit 3")}\'',
  ],
  [
    'perl',
    'perl',
    'perl -e \'open(F,">x");print F "a"x100000;close F;print -s "x","\\n";print `cat x | wc -c`;rename "x","y";print join(",",glob("*")),"\\n";unlink "y";exit 4\'',
  ],
  [
    'python3',
    'python',
    `python3 -c '
import os,subprocess,shutil,mmap,threading,tempfile,sys
open("x","w").write("hi"*1000); print(os.path.getsize("x"))
print(subprocess.run(["cat","x"],capture_output=True).stdout[:10])
print(subprocess.run("cat | wc -c",shell=True,input=b"12345",capture_output=True).stdout)
os.makedirs("d/e"); open("d/e/f","w").write("z"); shutil.copytree("d","d2"); shutil.rmtree("d"); print(sorted(os.listdir(".")))
f=open("m","w+b"); f.truncate(10000); m=mmap.mmap(f.fileno(),10000); m[5:10]=b"hello"; m.close(); f.close(); print(open("m","rb").read()[:12])
t=[threading.Thread(target=lambda i=i: open("t%d"%i,"w").write(str(i)*1000)) for i in range(8)]; [a.start() for a in t]; [a.join() for a in t]
print([os.stat("t%d"%i).st_size for i in range(8)])
with os.scandir(".") as s: print(sorted(e.name for e in s if e.is_file()))
r,w=os.pipe(); os.write(w,b"pipe"); print(os.read(r,9)); pid=os.fork()
if pid==0: os._exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(pid,0)[1])); sys.exit(6)'`,
  ],
  [
    'python3',
    'sqlite',
    `python3 -c '
import sqlite3
c=sqlite3.connect("db"); c.execute("pragma journal_mode=wal"); c.execute("create table t(a)")
c.executemany("insert into t values(?)",[(i,) for i in range(2000)]); c.commit(); print(c.execute("select sum(a) from t").fetchone()); c.close()
c=sqlite3.connect("db"); print(c.execute("select count(*) from t").fetchone()); c.close()
import os; os.unlink("db")'`,
  ],
  [
    'node',
    'node',
    `node -e '
const fs=require("fs"),cp=require("child_process")
fs.writeFileSync("x","hello"); fs.appendFileSync("x"," world"); console.log(fs.readFileSync("x","utf8"), fs.statSync("x").size)
fs.mkdirSync("a/b",{recursive:true}); fs.renameSync("x","a/b/x"); console.log(fs.readdirSync("a/b"))
console.log(cp.execSync("cat a/b/x").toString(), cp.spawnSync("sh",["-c","exit 3"]).status)
fs.promises.readFile("a/b/x","utf8").then(async t=>{console.log(t); await fs.promises.rm("a",{recursive:true}); for (const n of [1,2,3]) await fs.promises.writeFile("f"+n,"z".repeat(100000*n))
 const s=fs.createReadStream("f3"); let n=0; for await (const c of s) n+=c.length; console.log(n); process.exitCode=9})'`,
  ],
  [
    'git',
    'git',
    'export HOME=$PWD GIT_AUTHOR_DATE=2020-01-01T00:00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00:00Z; git init -q -b m . && git config user.email a@b && git config user.name a && seq 1000 > f && git add f && git commit -qm x && seq 1001 > f && git commit -qam y && git log --stat && git gc -q && git fsck && git checkout -q HEAD~1 && wc -l f; rm -rf .git',
  ],
  [
    'gcc',
    'gcc',
    'printf "#include <stdio.h>\\nint main(){puts(\\"x\\");}" > a.c && gcc -O1 a.c -o a.out && ./a.out; rm a.out',
  ],
  [
    'make',
    'make',
    'printf "all: a b c\\na:\\n\\techo a > a\\nb: a\\n\\tcat a > b\\nc: b\\n\\tfalse\\n" > Makefile; make -s -j2 2>/dev/null; cat b',
  ],
  [
    'bash',
    'bash',
    'x=$(echo hi); for i in 1 2 3; do echo $i >> f; done; cat < f; { echo a; echo b; } > g; diff f g; exec 3>h; echo z >&3; exec 3>&-; cat h; read l < f; echo $l; (exit 3); echo $?; mapfile -t a < f; echo ${a[1]}; cat <(echo ps); echo $x | tee t1 t2 | tr h j; exec 4<>rw; echo 12345 >&4; exec 4>&-; cat rw; kill -9 $BASHPID',
  ],
  [
    'dash',
    'dash',
    "dash -c 'x=$(echo hi); for i in 1 2 3; do echo $i >> f; done; cat < f; { echo a; echo b; } > g; cmp f g; echo $x | tr h j; cat f | sort -r | head -n 1; echo data > o 2>&1; cat < o 3< f; exit 11'",
  ],
  ['xargs', 'xargs', 'seq 1 50 | xargs -n 5 -P 2 echo | sort; seq 3 | xargs -I{} sh -c "echo {} > x{}"; ls'],
  [
    'find',
    'find',
    'mkdir -p a/b/c; touch a/1 a/b/2 a/b/c/3; find . -type f | sort; find . -name 3 -delete; find a -depth | sort; find . -type f -exec wc -c {} + | tail -n 1; du -a --apparent-size -b a | wc -l',
  ],
  [
    'sed',
    'sed -i and grep',
    'seq 1 100 > f; sed -i s/5/X/ f; grep -c X f; grep nothing f; echo $?; grep -r X . | wc -l',
  ],
  [
    'mktemp',
    'deleted and temporary files',
    'exec 5> gone; rm gone; echo x >&5; exec 5>&-; t=$(mktemp -p .); echo t > $t; cat $t; rm $t; ls',
  ],
]

const treeOf = (folder: string): string[] =>
  (readdirSync(folder, { recursive: true }) as string[]).sort().map(name => {
    const path = join(folder, name)
    const stat = lstatSync(path)
    if (stat.isSymbolicLink()) return `${name} -> ${readlinkSync(path)}`
    if (!stat.isFile()) return `${name}/`
    return `${name} ${stat.size} ${(stat.mode & 0o777).toString(8)} ${createHash('md5').update(readFileSync(path)).digest('hex')}`
  })

const places: [string, (workflow: Workflow) => string, string | undefined][] = [
  ['outside the managed directory', () => mkdtempSync(join(tmpdir(), 'millrace-eq-')), 'S'],
  ['on plain files inside', workflow => workflow.path('plain'), 'S'],
  ['as the producer of every file', workflow => workflow.path('made'), 'S'],
]

for (const [where, folderOf, app] of places)
  test(`programs behave the same ${where}`, { skip, timeout: 400_000 }, async t => {
    const workflow = new Workflow([step(0, 'S'), rule('file', 'made/*', '0', 'on_close:1', 'no_update')])
    try {
      for (const [needs, name, script] of programs)
        await t.test(name, { skip: hasCommand(needs) ? false : `${needs} is not installed` }, async () => {
          const plain = mkdtempSync(join(tmpdir(), 'millrace-eq-'))
          const managed = folderOf(workflow)
          mkdirSync(managed, { recursive: true })
          const run = (cwd: string, env: Record<string, string | undefined>) =>
            start('bash', ['-c', script], { cwd, env, limit: 60_000 }).done
          const clean = { LC_ALL: 'C', PYTHONDONTWRITEBYTECODE: '1' }
          const expected = await run(plain, clean)
          const actual = await run(managed, { ...workflow.env(app), ...clean })
          const named = (text: string): string => text.replaceAll(plain, '').replaceAll(managed, '')
          assert.deepEqual(
            {
              code: actual.code,
              stdout: named(actual.stdout),
              stderr: named(actual.stderr),
              tree: treeOf(managed),
            },
            {
              code: expected.code,
              stdout: named(expected.stdout),
              stderr: named(expected.stderr),
              tree: treeOf(plain),
            },
          )
          for (const folder of [plain, managed]) rmSync(folder, { recursive: true, force: true })
        })
    } finally {
      workflow.destroy()
    }
  })

test('the same with the switch off and without CAPIO_DIR', { skip }, async () => {
  const off = await start('sh', ['-c', 'echo x; exit 3'], { env: { LD_PRELOAD: tools.lib } }).done
  assert.deepEqual([off.code, off.stdout, off.stderr], [3, 'x\n', ''])
})
