// The 40-pin header of Raspberry Pi and Jetson boards, by the numbers of its pins. Pure.
//
// Source: the pin-out that Raspberry Pi publishes; Jetson developer kits have power and ground on the same pins.

export interface Use {
  readonly kind: 'power' | 'ground' | 'gpio' | 'other';
  readonly name: string;
}

const POWER: Readonly<Record<number, string>> = { 1: '3.3 V', 2: '5 V', 4: '5 V', 17: '3.3 V' };
const GROUND = new Set([6, 9, 14, 20, 25, 30, 34, 39]);
const BCM: Readonly<Record<number, number>> = {
  3: 2, 5: 3, 7: 4, 8: 14, 10: 15, 11: 17, 12: 18, 13: 27, 15: 22, 16: 23, 18: 24, 19: 10, 21: 9, 22: 25, 23: 11, 24: 8,
  26: 7, 27: 0, 28: 1, 29: 5, 31: 6, 32: 12, 33: 13, 35: 19, 36: 16, 37: 26, 38: 20, 40: 21,
};
const BUS: Readonly<Record<number, string>> = {
  3: 'I²C data', 5: 'I²C clock', 8: 'serial TX', 10: 'serial RX', 12: 'PWM', 19: 'SPI MOSI', 21: 'SPI MISO', 23: 'SPI clock',
  24: 'SPI CE0', 26: 'SPI CE1', 27: 'ID EEPROM', 28: 'ID EEPROM', 32: 'PWM', 33: 'PWM', 35: 'PWM',
};

/** Return what a pin of the header is for; an empty name for a number that the header does not have. */
export function functionOf(pin: number): Use {
  const power = POWER[pin];
  if (power !== undefined) return { kind: 'power', name: power };
  if (GROUND.has(pin)) return { kind: 'ground', name: 'ground' };
  const line = BCM[pin];
  if (line === undefined) return { kind: 'other', name: '' };
  const bus = BUS[pin];
  return { kind: 'gpio', name: bus === undefined ? `GPIO${line}` : `GPIO${line}, ${bus}` };
}

/** The pins as they are on the board: pairs of an odd and an even number. */
export const ROWS: readonly (readonly [number, number])[] = Array.from({ length: 20 }, (_, row) => [2 * row + 1, 2 * row + 2] as const);
