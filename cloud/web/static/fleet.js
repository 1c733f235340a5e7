"use strict";
/* Search of machines while typing: the server searches, the address of the page follows so that it can be saved, and the
   live connection continues with the new filter. */
(() => {
  const { $, $$ } = page;
  const form = $("[data-fleet-filter]");
  const PAUSE = 120; // milliseconds of silence before the server is asked
  $("[data-without-script]", form).hidden = true;
  let timer = 0, asked = null;

  async function look() {
    if (asked) asked.abort();
    asked = new AbortController();
    const url = new URL(window.location.href);
    url.searchParams.delete("page");
    for (const [name, value] of new FormData(form)) {
      if (value) url.searchParams.set(name, value); else url.searchParams.delete(name);
    }
    let text;
    try {
      text = await (await fetch(url, { headers: { accept: "text/html" }, signal: asked.signal })).text();
    } catch (error) {
      if (error.name === "AbortError" || error instanceof TypeError) return; // the next key asks again
      throw error;
    }
    const found = new DOMParser().parseFromString(text, "text/html");
    if (!$("#machines", found)) return form.submit(); // another page, such as an error: show it
    for (const id of ["machines", "pager", "counts"]) morph.node($(`#${id}`), $(`#${id}`, found));
    history.replaceState(null, "", url);
    document.body.dataset.live = found.body.dataset.live;
    page.again();
  }

  for (const input of $$("input, select", form)) {
    input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(look, input.type === "search" ? PAUSE : 0); });
  }
  form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(timer); look(); });
})();
