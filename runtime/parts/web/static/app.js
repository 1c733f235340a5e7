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

  page.on("readings", ({ values, error }) => page.readings($("[data-readings]"), values, error));
  page.connect(page.since);
})();
