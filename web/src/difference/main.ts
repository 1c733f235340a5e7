// Differences of configurations: each takes the place of a table, which is what is shown without scripts.
import './difference.css';

/** Show a difference when it is visible for the first time: those of a history are in closed details. */
const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting || !(target instanceof HTMLTableElement)) continue;
    seen.unobserve(target);
    // A script that does not arrive leaves the table.
    void import('./view').then(({ show }) => { show(target); }, () => undefined);
  }
});
for (const table of document.querySelectorAll<HTMLTableElement>('table.difference')) seen.observe(table);
