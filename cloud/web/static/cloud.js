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

  /* ---- a form that is checked by each choice: its parts with `data-checked` come from the page that checks it */

  for (const form of $$("form[data-now-check]")) {
    let newest = 0;
    form.addEventListener("change", async () => {
      const number = ++newest;
      try {
        const response = await fetch(`${form.getAttribute("data-now-check")}?${new URLSearchParams(new FormData(form))}`);
        const checked = new DOMParser().parseFromString(await response.text(), "text/html");
        const fresh = $$("form[data-now-check] [data-checked]", checked), old = $$("[data-checked]", form);
        if (number !== newest || fresh.length !== old.length) return; // a later choice, or another page
        old.forEach((part, at) => part.replaceChildren(...fresh[at].childNodes));
      } catch (error) { /* without an answer, the button that checks the form remains */ }
    });
  }

  /* ---- a list with a checkbox for each entry: select all, or with Shift all up to one */

  for (const place of $$("[data-select-all]")) {
    const all = $("input", place), selector = place.dataset.selectAll || "input[type=checkbox][name=id]";
    const list = place.dataset.selectAll ? document : place.closest("form");
    const entries = () => $$(selector, list); // read each time: live lists change
    const shown = () => {
      const boxes = entries(), count = boxes.filter((box) => box.checked).length;
      for (const place of $$("[data-selected]", all.form)) place.textContent = count ? `(${count})` : "";
      all.checked = count > 0 && count === boxes.length;
      all.indeterminate = count > 0 && count < boxes.length;
    };
    let last = -1;
    place.hidden = false;
    all.addEventListener("change", () => {
      for (const box of entries()) box.checked = all.checked;
      shown();
    });
    list.addEventListener("click", (event) => {
      const boxes = entries(), box = event.target, at = boxes.indexOf(box);
      if (at < 0) return;
      if (event.shiftKey && last >= 0) for (const between of boxes.slice(Math.min(at, last), Math.max(at, last))) between.checked = box.checked;
      last = at;
      shown();
    });
    addEventListener("pageshow", shown); // a browser restores checkboxes when it goes back
  }

  /* ---- times in local time; without scripts they are in UTC, as their titles are */

  const digits = (number, length = 2) => String(number).padStart(length, "0");
  const day = (moment) => `${moment.getFullYear()}-${digits(moment.getMonth() + 1)}-${digits(moment.getDate())}`;
  const minute = (moment) => `${digits(moment.getHours())}:${digits(moment.getMinutes())}`;
  function localize(root) {
    for (const time of $$("time[data-local]", root)) {
      const moment = new Date(time.dateTime);
      time.title = `${moment.toISOString().replace("T", " ").slice(0, 19)} UTC`;
      const precise = `:${digits(moment.getSeconds())}.${digits(moment.getMilliseconds(), 3)}`;
      time.textContent = `${day(moment).slice(time.dataset.local === "short" ? 5 : 0)} ${minute(moment)}`
        + (time.dataset.local === "minute" ? "" : precise);
    }
    for (const zone of $$("[data-zone]", root)) zone.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone || "local time";
  }
  localize(document);
  document.addEventListener("patched", () => localize(document)); // texts of live updates are in UTC
  const lines = $("#log");
  if (lines) new MutationObserver((changes) => changes.forEach((change) => change.addedNodes.forEach((node) => node.nodeType === 1 && localize(node)))).observe(lines, { childList: true });
  for (const input of $$("input[data-local-input]")) {
    const moment = new Date(`${input.value}Z`);
    if (input.value && !isNaN(moment)) input.value = `${day(moment)}T${minute(moment)}`;
    input.form.addEventListener("formdata", ({ formData }) => {
      const entered = new Date(formData.get(input.name));
      if (formData.get(input.name) && !isNaN(entered)) formData.set(input.name, entered.toISOString().slice(0, 16));
    });
  }

  /* ---- forms that name a time of this computer: the difference to UTC in minutes */

  document.addEventListener("submit", (event) => {
    const offset = event.target.elements.namedItem("offset");
    if (offset) offset.value = String(-new Date().getTimezoneOffset());
  }, true);

  /* ---- the number of alerts that fire, in the navigation of every page */

  const alerts = $("nav a[href='/alerts']");
  if (alerts && $(".sign-out")) {
    const count = document.createElement("span");
    count.className = "firing";
    count.hidden = true;
    alerts.append(count);
    const show = async () => {
      try {
        const { firing } = await (await fetch("/alerts/count")).json();
        count.hidden = !firing;
        count.textContent = firing ? String(firing) : "";
        count.title = `${firing} firing`;
      } catch (error) { /* the number stays as it is */ }
    };
    show();
    addEventListener("focus", show);
  }

  /* ---- on a phone, the navigation is wider than the window: scroll to the current page */

  for (const link of $$("nav [aria-current]")) link.scrollIntoView({ block: "nearest", inline: "nearest" });
  matchMedia("(orientation: portrait)").addEventListener("change", () => { // the page itself must not scroll
    for (const link of $$("nav [aria-current]")) {
      const nav = link.closest("nav"), inner = link.getBoundingClientRect(), outer = nav.getBoundingClientRect();
      nav.scrollLeft += Math.max(0, inner.right - outer.right) - Math.max(0, outer.left - inner.left);
    }
  });

  page.connect(page.since);
})();
