// Units of fields, as far as names tell them, and numbers as text. Pure.

export interface Unit {
  /** Such as °C; empty if it is not known. */
  readonly symbol: string;
  /** What is measured, for the title of a chart. */
  readonly name: string;
}

const UNITS: Readonly<Record<string, readonly [string, string]>> = {
  celsius: ['°C', 'temperature'], fahrenheit: ['°F', 'temperature'], kelvin: ['K', 'temperature'],
  mm: ['mm', 'length'], cm: ['cm', 'length'], m: ['m', 'length'], meters: ['m', 'length'], km: ['km', 'distance'],
  rpm: ['rpm', 'speed of rotation'], mps: ['m/s', 'speed'], kph: ['km/h', 'speed'],
  deg: ['°', 'angle'], degrees: ['°', 'angle'], rad: ['rad', 'angle'],
  volt: ['V', 'voltage'], volts: ['V', 'voltage'], mv: ['mV', 'voltage'],
  amp: ['A', 'current'], amps: ['A', 'current'], amperes: ['A', 'current'], ma: ['mA', 'current'],
  watt: ['W', 'power'], watts: ['W', 'power'], kwh: ['kWh', 'energy'], wh: ['Wh', 'energy'], joules: ['J', 'energy'],
  pa: ['Pa', 'pressure'], hpa: ['hPa', 'pressure'], kpa: ['kPa', 'pressure'], bar: ['bar', 'pressure'], psi: ['psi', 'pressure'],
  hz: ['Hz', 'frequency'], khz: ['kHz', 'frequency'], mhz: ['MHz', 'frequency'],
  percent: ['%', 'share'], pct: ['%', 'share'], ppm: ['ppm', 'concentration'], lux: ['lx', 'illuminance'], db: ['dB', 'level'], dbm: ['dBm', 'level'],
  kg: ['kg', 'mass'], g: ['g', 'mass'], newtons: ['N', 'force'], nm: ['N·m', 'torque'], liters: ['l', 'volume'], ml: ['ml', 'volume'],
  seconds: ['s', 'duration'], sec: ['s', 'duration'], ms: ['ms', 'duration'], us: ['µs', 'duration'], minutes: ['min', 'duration'],
  bytes: ['B', 'size'], kb: ['kB', 'size'], mb: ['MB', 'size'], bps: ['bit/s', 'rate'],
};
const ALONE = new Set(['celsius', 'fahrenheit', 'kelvin', 'rpm', 'volts', 'amps', 'watts', 'lux', 'percent', 'hpa', 'degrees']);

/** Return the unit of a field by the last word of its name, such as `temperature_celsius`. Unknown ones have no symbol. */
export function unitOf(path: string): Unit {
  const name = path.slice(path.lastIndexOf('.') + 1).toLowerCase();
  const words = name.split('_');
  const word = words.at(-1) ?? '';
  const unit = Object.hasOwn(UNITS, word) ? UNITS[word] : undefined;
  if (!unit || (words.length === 1 && !ALONE.has(word))) return { symbol: '', name: path };
  return { symbol: unit[0], name: unit[1] };
}

/** Return a number with at most six significant digits. */
export function numberText(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e15 ? String(value) : String(Number(value.toPrecision(6)));
}

/** Return a number with its unit. */
export function quantity(value: number, unit: Unit): string {
  return unit.symbol ? `${numberText(value)} ${unit.symbol}` : numberText(value);
}
