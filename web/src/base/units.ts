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

const COARSE = new Set(['%', 'kB', 'MB', 's', 'ms', 'µs']); // four digits say enough
const PREFIXED = new Set(['B', 'bit/s', 'Hz', 'W', 'Wh']);
const PREFIXES = ['', 'k', 'M', 'G', 'T', 'P'];

/** Return a number and the prefix of a unit that shortens it, such as 6.672 and M for 6672340 bit/s. */
function shortened(value: number, unit: Unit): readonly [string, string] {
  if (COARSE.has(unit.symbol) && Math.abs(value) < 10_000) return [String(Number(value.toPrecision(4))), ''];
  if (!PREFIXED.has(unit.symbol) || Math.abs(value) < 10_000) return [numberText(value), ''];
  const at = Math.min(Math.floor(Math.log10(Math.abs(value)) / 3), PREFIXES.length - 1);
  return [String(Number((value / 1000 ** at).toPrecision(4))), PREFIXES[at] ?? ''];
}

/** Return a number as it stands at an axis, whose label has the unit. */
export function tickText(value: number, unit: Unit): string {
  const [number, prefix] = shortened(value, unit);
  return prefix ? `${number} ${prefix}` : number;
}

/** Return a number with its unit. */
export function quantity(value: number, unit: Unit): string {
  const [number, prefix] = shortened(value, unit);
  return unit.symbol ? `${number} ${prefix}${unit.symbol}` : number;
}
