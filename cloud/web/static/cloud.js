"use strict";
/* The last script of every page: what all pages of the cloud have, and the live connection, once everybody listens. */
(() => {
  const { $, $$ } = page;

  /* ---- texts to copy */

  for (const button of $$("[data-copy]")) {
    if (!navigator.clipboard) continue; // not on plain HTTP beyond this computer
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText($("pre", button.parentNode).textContent);
      button.textContent = "Copied";
    });
  }

  /* ---- filters: whatever was chosen is asked for at once */

  for (const form of $$("form[data-now-filter]")) {
    for (const input of $$("select, input[type=datetime-local]", form)) {
      input.addEventListener("change", () => form.requestSubmit());
    }
  }

  /* ---- on a phone navigation is wider than the window: show where one is */

  for (const link of $$("nav [aria-current]")) link.scrollIntoView({ block: "nearest", inline: "nearest" });

  page.connect(page.since);
})();
