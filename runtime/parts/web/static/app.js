"use strict";
/* For the pages of a machine only. They work without this script, but are not updated. */
(() => {
  const { $, $$ } = page;

  /* ---- camera: the next image is requested after the last one was loaded */

  for (const image of $$("[data-camera]")) {
    const source = image.getAttribute("src");
    const note = $("[data-image-note]");
    const next = (delay) => setTimeout(() => {
      if (document.hidden) next(delay); else image.src = `${source}?t=${Date.now()}`;
    }, delay);
    image.addEventListener("load", () => { note.textContent = ""; next(500); });
    image.addEventListener("error", () => { note.textContent = "no image available"; next(3000); });
    if (image.complete) next(500);
  }

  /* ---- calls */

  for (const form of $$("form[data-call]")) form.addEventListener("submit", call);

  async function call(event) {
    event.preventDefault();
    const form = event.currentTarget;
    const output = $("output", form);
    const button = $("button:not([data-cancel])", form);
    const cancel = $("[data-cancel]", form);
    const stop = button.classList.contains("stop");
    const abort = new AbortController();
    const quit = () => abort.abort();
    if (!stop) button.disabled = true;
    if (cancel) { cancel.hidden = false; cancel.addEventListener("click", quit, { once: true }); }
    output.hidden = false;
    output.replaceChildren(part("span", "took", stop ? "stopping" : "running"));
    try {
      const response = await fetch(form.action, {
        method: "POST",
        headers: { accept: "application/json" },
        body: new URLSearchParams(new FormData(form)),
        signal: abort.signal,
      });
      const answer = await response.json();
      result(output, answer, stop);
    } catch (error) {
      const text = error.name === "AbortError" ? "cancelled" : "the server did not answer";
      result(output, { took: "", error: text });
    } finally {
      button.disabled = false;
      if (cancel) { cancel.hidden = true; cancel.removeEventListener("click", quit); }
    }
  }

  function result(output, { took, value, error }, stop) {
    const text = error ? "failed" : stop ? "stopped" : "done";
    output.replaceChildren(part("span", "took", took ? `${text} after ${took}` : text));
    if (error) {
      const note = part("div", "note is-unhealthy", "");
      note.append(part("p", "", error));
      output.append(note);
    } else if (value !== null && value !== undefined) {
      output.append(part("pre", "", value));
    }
  }

  function part(tag, name, text) {
    const element = document.createElement(tag);
    element.className = name;
    element.textContent = text;
    return element;
  }

  page.on("readings", ({ values, error }) => page.readings($("[data-readings]"), values, error));
  page.connect(page.since);
})();
