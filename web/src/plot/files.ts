// Charts as files that the browser saves.

import { styleColor } from './drawing';

/** Let the browser save a file. */
export function save(content: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => { URL.revokeObjectURL(link.href); }, 60_000);
}

const LINE = 20; // pixels

const textOf = (element: Element): string => element.textContent.replace(/\s+/g, ' ').trim();

/** Draw the charts below `root` with the range of time, their titles and legends into one picture; null without charts. */
export async function pngOf(root: HTMLElement): Promise<Blob | null> {
  const ratio = devicePixelRatio;
  const parts = [...root.querySelectorAll<HTMLElement>('.chart')].flatMap((chart) => {
    const drawn = chart.querySelector('canvas');
    const texts = [...chart.querySelectorAll('h2, .when')].map(textOf);
    texts.push(...[...chart.querySelectorAll('.legend li')].map((line) => [...line.children].map(textOf).filter(Boolean).join('  ')));
    const colors = [...chart.querySelectorAll('.legend rect')].map((box) => getComputedStyle(box).fill);
    return drawn ? [{ drawn, texts, colors, height: drawn.height / ratio + (texts.length + 1) * LINE }] : [];
  });
  if (parts.length === 0) return null;
  const picture = document.createElement('canvas');
  picture.width = Math.max(...parts.map(({ drawn }) => drawn.width));
  picture.height = parts.reduce((sum, part) => sum + part.height, 3 * LINE) * ratio;
  const context = picture.getContext('2d');
  if (!context) return null;
  context.fillStyle = styleColor('--paper');
  context.fillRect(0, 0, picture.width, picture.height);
  context.scale(ratio, ratio);
  context.font = '13px system-ui, sans-serif';
  let y = LINE;
  const write = (text: string, color: string): void => {
    context.fillStyle = color;
    context.fillText(text, 10, y);
    y += LINE;
  };
  const status = root.querySelector('[role=status]');
  if (status) write(textOf(status), styleColor('--muted'));
  y += LINE / 2;
  for (const { drawn, texts: [title = '', when = '', ...lines], colors } of parts) {
    write(title, styleColor('--ink'));
    context.drawImage(drawn, 0, y - LINE / 2, drawn.width / ratio, drawn.height / ratio);
    y += drawn.height / ratio + LINE / 2;
    write(when, styleColor('--muted'));
    lines.forEach((line, at) => { write(line, colors[at] ?? styleColor('--ink')); });
    y += LINE / 2;
  }
  return new Promise((resolve) => { picture.toBlob(resolve, 'image/png'); });
}
