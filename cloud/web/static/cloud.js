"use strict";
/* Last script of every page: functions of all pages of the cloud, and the live connection, after all handlers exist. */
(() => {
  const { $, $$ } = page;

  /* ---- texts to copy */

  for (const button of $$("[data-copy]")) {
    if (!navigator.clipboard) continue; // missing on plain HTTP, except from this computer
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText($("pre", button.parentNode).textContent);
      button.textContent = "Copied";
    });
  }

  /* ---- filters: a selection is submitted immediately */

  for (const form of $$("form[data-now-filter]")) {
    for (const input of $$("select, input[type=datetime-local]", form)) {
      input.addEventListener("change", () => form.requestSubmit());
    }
  }

  /* ---- on a phone, the navigation is wider than the window: scroll to the current page */

  for (const link of $$("nav [aria-current]")) link.scrollIntoView({ block: "nearest", inline: "nearest" });

  page.connect(page.since);
})();
