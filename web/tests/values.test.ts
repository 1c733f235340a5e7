import { expect, it } from 'vitest';
import { INTERRUPTED, measured, said } from '../src/control/values';

it.each([
  ['disk_total_bytes', 271_000_000_000, '271 GB'],
  ['x_bytes', 999, '999 B'],
  ['memory.free_bytes', 1_234_567, '1.23 MB'],
  ['sent_bytes', 0, '0 B'],
  ['megabytes', 1_234_567, '1234567'],
  ['swap_bytes', 5e17, '500000 TB'],
  ['volts', 12.54, '12.54 V'],
  ['memory_used_pct', 8.2, '8.2 %'],
])('%s of %d is %s', (name, value, text) => { expect(measured(name, value)).toBe(text); });

it.each([
  ['[canceled] operation 34bc1a54-6f8b-441f-aaf7-2a847a80c2ec was cancelled', INTERRUPTED],
  ['[unknown] SESSION_EXPIRED', INTERRUPTED],
  ['[unavailable] the motor is not connected', 'the motor is not connected'],
])('says in words why a call has ended: %s', (text, sentence) => {
  expect(said(new Error(text))).toBe(sentence);
});
