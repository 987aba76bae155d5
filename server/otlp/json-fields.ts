/**
 * Reads the fields of an item in the JSON form of protobuf, in every spelling that it allows: 64-bit numbers as text or
 * number, `1e3` and `1.0` for integers, "NaN", names of enum values. Null is an absent field. A value of another type
 * is never converted: it throws `WrongField`, which refuses the item that has it.
 */
import { instantOf, storable, type AttributeValue, type Instant } from './model.ts'

export type Fields = { [name: string]: unknown }

/** Refuses one item; the others of its request are stored. */
export class WrongField extends Error {
  readonly field: string
  readonly problem: string
  constructor(field: string, problem: string) {
    super(`${field} ${problem}`.trim())
    this.name = 'WrongField'
    this.field = field
    this.problem = problem
  }
  /** The same, with the path from outside. */
  below(path: string): WrongField {
    return new WrongField(this.field === '' ? path : `${path}.${this.field}`, this.problem)
  }
}

export function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function objectIn(value: unknown, field: string): Fields {
  if (!isPresent(value)) return {}
  if (!isObject(value)) throw new WrongField(field, 'must be an object')
  return value
}

export function listIn(value: unknown, field: string): unknown[] {
  if (!isPresent(value)) return []
  if (!Array.isArray(value)) throw new WrongField(field, 'must be a list')
  return value
}

export function text(value: unknown, field: string): string {
  if (!isPresent(value)) return ''
  if (typeof value !== 'string') throw new WrongField(field, 'must be a string')
  return storable(value)
}

export function flag(value: unknown, field: string): boolean {
  if (typeof value !== 'boolean') throw new WrongField(field, 'must be true or false')
  return value
}

const hexDigits = /^[0-9a-fA-F]*$/
const base64Id = /^[A-Za-z0-9+/_-]{11}(?:=|[A-Za-z0-9+/_-]{11}(?:==)?)?$/

/**
 * An id as hex digits, as the JSON form of OTLP writes it. Libraries that know only protobuf write 8 or 16 bytes as
 * base64, which has 11 or 22 digits: no id in hex has. Anything else fails the check of its length.
 */
export function id(value: unknown, field: string): string {
  const idText = text(value, field)
  if (hexDigits.test(idText)) return idText.toLowerCase().slice(0, 64)
  return base64Id.test(idText) ? Buffer.from(idText, 'base64').toString('hex') : '?'
}

/** The value of an enum, by number or by name. Numbers that no convention knows yet are allowed. */
export function enumValue(value: unknown, field: string, names: readonly string[]): number {
  if (typeof value === 'string' && /^[A-Z]/.test(value)) {
    const number = names.indexOf(value)
    if (number < 0) throw new WrongField(field, `must be one of ${names.join(', ')}, or its number`)
    return number
  }
  return integerBetween(value, field, -(2n ** 31n), 2n ** 31n - 1n)
}

export function uint32(value: unknown, field: string): number {
  return integerBetween(value, field, 0n, 2n ** 32n - 1n)
}

function integerBetween(value: unknown, field: string, minimum: bigint, maximum: bigint): number {
  if (!isPresent(value) || value === '') return 0
  const integer = exactInteger(value)
  if (integer === null || integer < minimum || integer > maximum)
    throw new WrongField(field, `must be an integer from ${minimum} to ${maximum}`)
  return Number(integer)
}

const int64Min = -(2n ** 63n)
const int64Max = 2n ** 63n - 1n

/** A number, or text when no double holds it exactly. */
export function int64(value: unknown, field: string): AttributeValue {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value + 0 // -0 is 0
  const integer = exactInteger(value)
  if (integer === null || integer < int64Min || integer > int64Max)
    throw new WrongField(field, 'must be an integer of 64 bits')
  const number = Number(integer)
  return Number.isSafeInteger(number) ? number : String(integer)
}

const specialDoubles = new Set(['NaN', 'Infinity', '-Infinity'])
const decimal = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** Infinite values and NaN stay text, because no JSON number holds them. */
export function double(value: unknown, field: string): AttributeValue {
  if (typeof value === 'string' && specialDoubles.has(value)) return value
  const isNumber = typeof value === 'number' || (typeof value === 'string' && decimal.test(value))
  const number = isNumber ? Number(value) : Number.NaN
  if (!Number.isFinite(number))
    throw new WrongField(field, 'must be a number of 64 bits, "NaN", "Infinity" or "-Infinity"')
  return number
}

const base64Text = /^[A-Za-z0-9+/_-]*={0,2}$/

/** Bytes as base64, the same text for every spelling: with or without padding, and in the alphabet for URLs. */
export function bytes(value: unknown, field: string): string {
  if (typeof value !== 'string' || !base64Text.test(value)) throw new WrongField(field, 'must be base64')
  return Buffer.from(value, 'base64').toString('base64')
}

const nanosecondsMax = 2n ** 64n - 1n

export function instant(value: unknown, field: string): Instant | null {
  if (!isPresent(value) || value === '') return null
  if (typeof value === 'string' && /^\d{1,19}$/.test(value)) return instantOfNanoseconds(BigInt(value))
  const nanoseconds = exactInteger(value)
  if (nanoseconds === null || nanoseconds < 0n || nanoseconds > nanosecondsMax)
    throw new WrongField(field, 'must be a time in nanoseconds since 1970')
  return instantOfNanoseconds(nanoseconds)
}

function instantOfNanoseconds(nanoseconds: bigint): Instant | null {
  return instantOf(Number(nanoseconds >> 32n), Number(nanoseconds & 0xffffffffn))
}

const integerForm = /^(-?)(\d{1,40})(?:\.(\d{1,40}))?(?:[eE]([+-]?\d{1,3}))?$/
const exponentMax = 40

/** The integer that a number or a text stands for, without rounding; null when it is none. */
function exactInteger(value: unknown): bigint | null {
  if (typeof value !== 'string' && typeof value !== 'number') return null
  const match = integerForm.exec(String(value))
  if (match === null) return null
  const [, sign = '', whole = '', fraction = '', exponentText = '0'] = match
  const digits = whole + fraction
  const zeros = Number(exponentText) - fraction.length
  if (Math.abs(zeros) > exponentMax * 2) return /^0*$/.test(digits) ? 0n : null
  const shifted = zeros >= 0 ? digits + '0'.repeat(zeros) : digits.slice(0, zeros)
  const cut = zeros >= 0 ? '' : digits.slice(zeros)
  if (/[1-9]/.test(cut)) return null
  const integer = BigInt(shifted === '' ? '0' : shifted)
  return sign === '-' ? -integer : integer
}
