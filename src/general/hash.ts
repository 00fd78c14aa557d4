/** A number that tells texts apart: 53 bits, never 0. It finds changes; it is no protection against forgery. */
export function hashText(text: string, seed = 0): number {
  let a = 0x9e3779b1 ^ seed
  let b = 0x85ebca6b ^ seed
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    a = Math.imul(a ^ code, 0x01000193)
    a = (a << 13) | (a >>> 19)
    b = Math.imul(b + code, 0xc2b2ae35)
    b ^= b >>> 15
  }
  a = Math.imul(a ^ (a >>> 16) ^ text.length, 0x45d9f3b)
  b = Math.imul(b ^ (b >>> 13), 0x27d4eb2f)
  a ^= b >>> 16
  b ^= a >>> 11
  return (b >>> 0) * 0x200000 + ((a >>> 0) >>> 11) || 1
}
