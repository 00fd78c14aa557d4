// Small programs of many kinds, each run plain and under the library (equal.test.ts).
export const programs: [needs: string, name: string, script: string][] = [
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
  [
    'sqlite3',
    'sqlite3, with a journal and with a log, by two processes at once',
    `for mode in delete truncate wal; do rm -f db*
sqlite3 db "pragma journal_mode=$mode; create table t(a integer primary key, b text); begin; insert into t values(1,'x'); rollback;"
for i in 1 2; do (echo ".timeout 20000"; for k in $(seq 30); do echo "insert into t(b) values('p$k');"; done) | sqlite3 db & done; wait
sqlite3 db "select count(*), sum(a) from t; pragma integrity_check; create index i on t(b); update t set b=b||'!' where b like 'p1%'; vacuum; select count(distinct b) from t;"
done; sqlite3 db .dump | wc -l; sqlite3 db "select * from none"; echo $?; rm -f db*`,
  ],
  [
    'git',
    'git: branches, merges, clones',
    `export HOME=$PWD GIT_AUTHOR_DATE=2020-01-01T00:00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00:00Z GIT_CONFIG_NOSYSTEM=1
git config --global user.email a@b; git config --global user.name a; git config --global init.defaultBranch m
git init -q r; cd r; seq 100 > f; mkdir d; seq 9 > d/g; git add .; git commit -qm one; git checkout -qb side; sed -i s/50/fifty/ f; git commit -qam side
git checkout -q m; echo 101 >> f; git mv d/g d/h; git commit -qam two; git merge -q side -m merged; git log --oneline --graph | cat; git diff HEAD~1 --stat | cat
git stash list; echo dirty >> f; git stash -q; git stash pop -q; git status --short; git checkout -q f; git tag v1; git repack -adq; cd ..
git clone -q r c; git clone -q --bare r b.git; cd c; echo 102 >> f; git commit -qam three; git push -q ../b.git HEAD:m; cd ..; git -C b.git log -1 --format=%s%H; git -C c fsck; git -C c archive HEAD | tar t; rm -rf r c b.git .gitconfig`,
  ],
  [
    'gcc',
    'gcc: several files, a library, a header that changes',
    `printf 'int twice(int);\n' > t.h; printf '#include "t.h"\nint twice(int a){return 2*a;}\n' > t.c; printf '#include <stdio.h>\n#include "t.h"\nint main(void){printf("%%d\\n", twice(21));return twice(2);}\n' > main.c
gcc -O1 -MMD -c t.c main.c && cat main.d | head -c 20 && ar rcsD libt.a t.o && gcc -O1 -pipe -o app main.o -L. -lt && ./app; echo $?; gcc -shared -fPIC -o libs.so t.c && gcc main.c -L. -ls -Wl,-rpath,. -o dyn && ./dyn; echo 'int broken(' > bad.c; gcc -c bad.c 2>/dev/null; echo $?; objdump -f app | grep -c format; strip app; ./app; rm -f app dyn libs.so *.o`,
  ],
  [
    'perl',
    'perl: in place, locks, seeks, children',
    `seq 1 200 > f; perl -pi.bak -e 's/7/seven/' f; cmp f f.bak | head -c 20; perl -e 'use Fcntl qw(:flock :seek O_RDWR O_CREAT); sysopen(F,"s",O_RDWR|O_CREAT) or die; flock(F,LOCK_EX); syswrite(F,"abcdef"); sysseek(F,2,SEEK_SET); sysread(F,$b,3); print "$b\n"; truncate(F,4); close F; print -s "s","\n";
for $i (1..3) { if (!fork) { open(A,">>","a"); print A "x\n"; close A; exit $i } } while ((my $p=wait)>0) { $sum+=$?>>8 } print "$sum\n"; open(P,"-|","sort a"); print <P>; close P; opendir(D,"."); print join(" ",sort readdir D),"\n"; print join(",",(stat "s")[7,3]),"\n"; utime 5,6,"s"; print +(stat "s")[9],"\n"; open(S,"<","f"); seek(S,-5,2); print scalar <S>; rmdir "none" or print "$!\n"; exit 12'`,
  ],
  [
    'python3',
    'python: archives, pools, temporary files',
    `python3 -c '
import os,zipfile,gzip,json,tempfile,shutil,csv,multiprocessing as mp,sqlite3,io,fcntl,select,signal
with zipfile.ZipFile("z.zip","w") as z: z.writestr(zipfile.ZipInfo("a"),"1"*5000); z.writestr(zipfile.ZipInfo("b/c"),"2")
print(zipfile.ZipFile("z.zip").testzip(), zipfile.ZipFile("z.zip").namelist()); os.unlink("z.zip")
with gzip.GzipFile("g.gz","wb",mtime=0) as g: g.write(b"line\\n"*9999)
print(sum(1 for _ in gzip.open("g.gz"))); json.dump({"a":[1,2]},open("j","w")); print(json.load(open("j")))
with tempfile.NamedTemporaryFile(dir=".") as t: t.write(b"x"*10); t.flush(); print(os.path.getsize(t.name))
with tempfile.TemporaryDirectory(dir=".") as d: open(d+"/q","w").write("q"); print(os.listdir(d))
def work(i):
  with open("w%d"%i,"w") as f: f.write("w"*i*1000)
  return os.path.getsize("w%d"%i)
with mp.Pool(2) as p: print(p.map(work,range(4)))
f=open("r","r+b" if os.path.exists("r") else "w+b"); f.write(bytes(range(256))*40); f.seek(100); print(f.read(3)); f.seek(-3,2); print(f.tell(), f.read()); f.truncate(50); f.close(); print(os.stat("r").st_size)
os.replace("r","s"); os.link("s","t"); print(os.stat("s").st_nlink, os.path.samefile("s","t")); os.symlink("s","u"); print(os.readlink("u"), os.path.realpath("u")[-2:])
fd=os.open("v",os.O_RDWR|os.O_CREAT); os.pwrite(fd,b"pos",10); print(os.pread(fd,20,0), os.lseek(fd,0,2)); os.posix_fallocate(fd,0,64); print(os.fstat(fd).st_size); fcntl.lockf(fd,fcntl.LOCK_EX); os.close(fd)
try: open("no/where")
except OSError as e: print(e.errno)
print(shutil.make_archive("arc","tar",".","j")[-7:], shutil.disk_usage(".").total>0); os.unlink("arc.tar")'`,
  ],
  [
    'node',
    'node: streams, threads, copies, many files at once',
    `node -e '
const fs=require("fs"),p=fs.promises,{pipeline}=require("stream/promises"),zlib=require("zlib"),{Worker}=require("worker_threads")
;(async()=>{
await p.writeFile("in","abc".repeat(50000)); await pipeline(fs.createReadStream("in"),zlib.createGzip(),zlib.createGunzip(),fs.createWriteStream("out")); console.log((await p.stat("out")).size)
await Promise.all(Array.from({length:60},(_,i)=>p.writeFile("m"+i,String(i)))); console.log((await p.readdir(".")).length); let n=0; for (const s of await Promise.all(Array.from({length:60},(_,i)=>p.readFile("m"+i,"utf8")))) n+=+s; console.log(n)
await p.mkdir("x/y",{recursive:true}); await p.cp("out","x/y/z"); await p.cp("x","w",{recursive:true}); await p.copyFile("in","x/c"); console.log(await p.readdir("w",{recursive:true})); await p.truncate("in",10); const h=await p.open("in","r+"); await h.write("ZZ",3); await h.sync(); console.log((await h.readFile("utf8")),(await h.stat()).size); await h.close()
await new Promise(r=>new Worker("const fs=require(\\"fs\\");fs.writeFileSync(\\"t\\",\\"thread\\");fs.appendFileSync(\\"t\\",\\"!\\")",{eval:true}).on("exit",r)); console.log(fs.readFileSync("t","utf8"))
await p.symlink("in","l"); console.log(await p.readlink("l"),(await p.lstat("l")).isSymbolicLink(),await p.access("none").catch(e=>e.code)); await p.rm("x",{recursive:true}); await p.rename("w","v"); for (let i=0;i<60;i++) fs.unlinkSync("m"+i)
const s=fs.openSync("sync","w+"); fs.writeSync(s,"hello"); const b=Buffer.alloc(3); fs.readSync(s,b,0,3,1); console.log(String(b)); fs.ftruncateSync(s,2); fs.futimesSync(s,1,2); console.log(fs.fstatSync(s).mtimeMs); fs.closeSync(s); console.log(fs.opendirSync("v").readSync().name)
})()'`,
  ],
  [
    'awk',
    'awk: many outputs, pipes, its own input',
    `seq 1 1000 | awk '{ print > ("o" $1 % 5) } END { for (i = 0; i < 5; i++) { close("o" i); while ((getline l < ("o" i)) > 0) s += l } print s; print "b\\na" | "sort"; close("sort"); printf "x" >> "ap"; close("ap"); printf "y" >> "ap" }'; cat ap; awk 'NR==FNR { a[$1]; next } $1 in a' o1 o2 | wc -l; awk '{print}' none; echo $?`,
  ],
  [
    'zip',
    'packers: bzip2, xz, zip, zstd, patch',
    `seq 5000 > a; for z in "bzip2 -k" "xz -k -T1" "zstd -q -k"; do command -v \${z%% *} > /dev/null && $z a; done; ls | wc -l; xz -dc a.xz | cmp - a; bzip2 -t a.bz2; zip -qX z.zip a && unzip -p z.zip a | md5sum; rm -f z.zip a.*; sed s/77/seventy/ a > b; diff -u --label a --label b a b > p; patch -s a p; cmp a b; sort -u a b | wc -l; comm -12 a b | wc -l; shuf --random-source=a a | sort -n | md5sum; tac a | head -n 2; paste a b | tail -n 1; install -m 640 a inst; stat -c %a inst; mkfifo q; (echo through > q &) ; cat q; rm q; tee -a a < p > /dev/null; csplit -s -n1 p 2; ls x*; sync a; realpath --relative-to=. a`,
  ],
  ['true', 'calls of every kind, also wrong ones', 'fixture many-calls'],
  ['true', 'calls with pointers that lead nowhere', 'fixture bad-pointers'],
]
