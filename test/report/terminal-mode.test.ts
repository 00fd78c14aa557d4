import assert from 'node:assert/strict'
import test from 'node:test'
import { chooseMode, type ModeFacts } from '../../src/report/terminal/terminal-mode.ts'

const modes: [string, ModeFacts, string][] = [
  ['a terminal', { isTTY: true, env: {} }, 'live'],
  ['a pipe', { isTTY: false, env: {} }, 'plain'],
  ['CI', { isTTY: true, env: { CI: 'true' } }, 'plain'],
  ['CI=false', { isTTY: true, env: { CI: 'false' } }, 'live'],
  ['a dumb terminal', { isTTY: true, env: { TERM: 'dumb' } }, 'plain'],
  ['what was asked for, whatever the rest', { asked: 'live', isTTY: false, env: { CI: '1' } }, 'live'],
  ['json on a terminal', { asked: 'json', isTTY: true, env: {} }, 'json'],
]
for (const [situation, facts, mode] of modes) {
  test(`${mode} for ${situation}`, () => assert.equal(chooseMode(facts).mode, mode))
}

const colors: [string, ModeFacts, boolean][] = [
  ['on a terminal', { isTTY: true, env: {} }, true],
  ['in a pipe', { isTTY: false, env: {} }, false],
  ['on a dumb terminal', { isTTY: true, env: { TERM: 'dumb' } }, false],
  ['with NO_COLOR', { isTTY: true, env: { NO_COLOR: '1' } }, false],
  ['with an empty NO_COLOR', { isTTY: true, env: { NO_COLOR: '' } }, true],
  ['with FORCE_COLOR in a pipe', { isTTY: false, env: { FORCE_COLOR: '1' } }, true],
  ['with FORCE_COLOR=0', { isTTY: true, env: { FORCE_COLOR: '0' } }, false],
  [
    'with FORCE_COLOR and NO_COLOR, as in Node',
    { isTTY: false, env: { FORCE_COLOR: '1', NO_COLOR: '1' } },
    true,
  ],
  ['with CLICOLOR_FORCE in a pipe', { isTTY: false, env: { CLICOLOR_FORCE: '1' } }, true],
  ['with NO_COLOR and CLICOLOR_FORCE', { isTTY: true, env: { NO_COLOR: '1', CLICOLOR_FORCE: '1' } }, false],
  ['when asked for', { askedColor: true, isTTY: false, env: { NO_COLOR: '1' } }, true],
  ['when refused', { askedColor: false, isTTY: true, env: { FORCE_COLOR: '1' } }, false],
  ['in json', { asked: 'json', askedColor: true, isTTY: true, env: {} }, false],
]
for (const [situation, facts, color] of colors) {
  test(`${color ? 'colour' : 'no colour'} ${situation}`, () => assert.equal(chooseMode(facts).color, color))
}

test('symbols only where the locale has them', () => {
  const unicode = (env: Record<string, string>): boolean => chooseMode({ isTTY: true, env }).unicode
  assert.equal(unicode({ LANG: 'en_US.UTF-8' }), true)
  assert.equal(unicode({ LANG: 'C.utf8' }), true)
  assert.equal(unicode({ LANG: 'en_US.UTF-8', LC_ALL: 'C' }), false)
  assert.equal(unicode({ LANG: 'en_US.UTF-8', TERM: 'dumb' }), false)
  assert.equal(unicode({}), false)
})

test('an unknown mode names the nearest', () => {
  assert.throws(() => chooseMode({ asked: 'liv', isTTY: true, env: {} }), /Did you mean live\? It is one of/)
})
