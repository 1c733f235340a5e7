"use strict";
/* Filters the machines as one types. The address follows, so that it can be kept and the live connection asks for all. */
(() => {
  const { $, $$ } = page;
  const form = $("[data-fleet-filter]");
  const none = $("[data-none]");
  $("[data-without-script]", form).hidden = true;

  function apply() {
    const words = form.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    const location = form.location.value, state = form.state.value;
    let shown = 0;
    for (const row of $$("#machines tbody tr")) {
      const fits = words.every((word) => row.dataset.search.includes(word))
        && (!location || row.dataset.location === location) && (!state || row.dataset.state === state);
      row.hidden = !fits;
      if (fits) shown += 1;
    }
    none.hidden = shown > 0;
    if (!shown) none.textContent = $("#machines tbody tr") ? "No machine fits." : "There are no machines yet.";
  }

  function changed() {
    apply();
    const url = new URL(window.location.href);
    for (const [name, value] of new FormData(form)) {
      if (value) url.searchParams.set(name, value); else url.searchParams.delete(name);
    }
    history.replaceState(null, "", url);
    for (const link of $$("#machines th a")) {
      const target = new URL(link.href);
      for (const name of ["q", "location", "state"]) {
        if (form[name].value) target.searchParams.set(name, form[name].value); else target.searchParams.delete(name);
      }
      link.href = target.pathname + target.search;
    }
  }

  for (const input of $$("input, select", form)) input.addEventListener("input", changed);
  form.addEventListener("submit", (event) => { event.preventDefault(); changed(); });
  page.on("patch", apply); // rows that came anew
  /* What was filtered by the server is filtered here from now on: the live connection brings every machine. */
  const all = new URL(document.body.dataset.live, window.location.href);
  for (const name of ["q", "location", "state"]) all.searchParams.delete(name);
  document.body.dataset.live = all.pathname + all.search;
})();
