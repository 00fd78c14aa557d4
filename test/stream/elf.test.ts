import assert from 'node:assert/strict'
import { chmodSync, chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { findProgram, inspectProgram } from '../../src/stream/index.ts'
import { programsOf } from '../../src/stream/run/elf.ts'
import { folderOf } from './support.ts'

interface Part {
  type: number
  content: Buffer
}
const interp = (path: string): Part => ({ type: 3, content: Buffer.from(`${path}\0`) })
const note = (name: string, type: number): Part => {
  const head = Buffer.alloc(12)
  head.writeUInt32LE(name.length + 1, 0)
  head.writeUInt32LE(4, 4)
  head.writeUInt32LE(type, 8)
  return { type: 4, content: Buffer.concat([head, Buffer.from(name.padEnd(4, '\0')), Buffer.from('abcd')]) }
}

/** A file with the headers of a 64-bit program, and nothing in it that could run. */
function elf(parts: Part[], wide = true): Buffer {
  const head = Buffer.alloc(64)
  head.write('\x7fELF', 'latin1')
  head[4] = wide ? 2 : 1
  head[5] = 1
  head.writeBigUInt64LE(64n, 32)
  head.writeUInt16LE(56, 54)
  head.writeUInt16LE(parts.length, 56)
  let offset = 64 + 56 * parts.length
  const table = parts.map(({ type, content }) => {
    const entry = Buffer.alloc(56)
    entry.writeUInt32LE(type, 0)
    entry.writeBigUInt64LE(BigInt(offset), 8)
    entry.writeBigUInt64LE(BigInt(content.length), 32)
    offset += content.length
    return entry
  })
  return Buffer.concat([head, ...table, ...parts.map(part => part.content)])
}

const LD = '/lib64/ld-linux-x86-64.so.2'
const cases: [name: string, content: Uint8Array | string, fault: RegExp | undefined][] = [
  ['a dynamic program', elf([interp(LD), note('GNU', 3)]), undefined],
  ['a static program', elf([note('GNU', 3)]), /statically linked/],
  ['a Go program', elf([note('Go', 4)]), /written in Go/],
  ['a Go program with libc', elf([interp(LD), note('Go', 4)]), /written in Go/],
  ['a program for musl', elf([interp('/lib/ld-musl-x86_64.so.1')]), /musl/],
  ['a 32-bit program', elf([interp(LD)], false), /32-bit/],
  ['a script of a dynamic program', '#!/bin/sh\n', undefined],
  ['a script by way of env', '#!/usr/bin/env -S sh\n', undefined],
  ['something else', 'hello', undefined],
  ['an empty file', '', undefined],
  ['headers that lead nowhere', elf([]).fill(0xff, 32, 40), /statically/],
]

describe('programs that cannot be intercepted', () => {
  for (const [name, content, fault] of cases) {
    test(name, () => {
      const path = join(folderOf({}), 'program')
      writeFileSync(path, content)
      chmodSync(path, 0o755)
      const found = inspectProgram(path)
      if (fault === undefined) assert.equal(found.fault, undefined)
      else assert.match(found.fault ?? '', fault)
    })
  }

  test('a script of a static program', () => {
    const folder = folderOf({})
    writeFileSync(join(folder, 'interpreter'), elf([]), { mode: 0o755 })
    writeFileSync(join(folder, 'script'), `#!${folder}/interpreter -x\n`, { mode: 0o755 })
    assert.match(
      inspectProgram(join(folder, 'script')).fault!,
      /is run by .*interpreter, which is statically linked/,
    )
  })

  test('a set-uid program of another user', { skip: process.getuid?.() !== 0 && 'needs root' }, () => {
    const path = join(folderOf({}), 'program')
    writeFileSync(path, elf([interp(LD)]))
    chownSync(path, 12345, 0)
    chmodSync(path, 0o4755)
    assert.match(inspectProgram(path).fault!, /set-uid/)
    chownSync(path, 0, 0)
    chmodSync(path, 0o4755)
    assert.equal(inspectProgram(path).fault, undefined)
  })

  test('programs are found as execvp finds them', () => {
    const folder = folderOf({ 'not-executable': '', 'dir/x': '' })
    writeFileSync(join(folder, 'prog'), '', { mode: 0o755 })
    assert.equal(findProgram('prog', '/', `/nowhere:${folder}`), join(folder, 'prog'))
    assert.equal(findProgram('./prog', folder), join(folder, 'prog'))
    assert.equal(findProgram('not-executable', '/', folder), undefined)
    assert.equal(findProgram('dir', '/', folder), undefined)
  })

  test('the words of a shell line that are programs', () => {
    const names = (line: string): string[] =>
      programsOf(line, '/').map(program => program.path.split('/').pop()!)
    assert.deepEqual(names("X=1 seq 10 | sort -n > 'a b' && cat x; (wc -l)"), [
      'sh',
      'seq',
      'sort',
      'cat',
      'wc',
    ])
    assert.deepEqual(names('echo "a | cat"'), ['sh', 'echo'])
    assert.deepEqual(names('$PROG x'), ['sh'])
    assert.deepEqual(programsOf(['seq', '1'], '/').length, 1)
  })
})
