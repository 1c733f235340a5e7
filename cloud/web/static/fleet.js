"use strict";
/* Search of machines while typing: the server searches, the address of the page follows so that it can be saved, and the
   live connection continues with the new filter. */
(() => {
  const { $, $$ } = page;
  const form = $("[data-fleet-filter]");
  const PAUSE = 120; // milliseconds of silence before the server is asked
  $("[data-without-script]", form).hidden = true;
  let timer = 0, request = null;

  async function search() {
    if (request) request.abort();
    request = new AbortController();
    const url = new URL(window.location.href);
    for (const name of ["after", "before"]) url.searchParams.delete(name);
    for (const [name, value] of new FormData(form)) {
      if (value) url.searchParams.set(name, value); else url.searchParams.delete(name);
    }
    let text;
    try {
      text = await (await fetch(url, { headers: { accept: "text/html" }, signal: request.signal })).text();
    } catch (error) {
      if (error.name === "AbortError" || error instanceof TypeError) return; // the next key asks again
      throw error;
    }
    const result = new DOMParser().parseFromString(text, "text/html");
    if (!$("#machines", result)) return form.submit(); // another page, such as an error: show it
    for (const id of ["machines", "pager", "counts"]) morph.node($(`#${id}`), $(`#${id}`, result));
    for (const place of ["[data-all]", "[name=query]"]) replace(`#selection ${place}`, result);
    history.replaceState(null, "", url);
    document.body.dataset.live = result.body.dataset.live;
    page.reconnect();
  }

  function replace(selector, result) {
    const before = $(selector), after = $(selector, result);
    if (before && after) before.replaceWith(after);
  }

  for (const input of $$("input, select", form)) {
    input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, input.type === "search" ? PAUSE : 0); });
  }
  form.addEventListener("submit", (event) => {
    if (event.submitter?.hasAttribute("formaction")) return; // the same conditions on another page
    event.preventDefault();
    clearTimeout(timer);
    search();
  });
})();
