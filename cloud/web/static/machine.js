"use strict";
/* Readings of a machine: a table for each sensor. */
(() => {
  const { $ } = page;
  const section = $("[data-sensors]");
  const list = $(".sensors", section);
  const template = $("#sensor");
  const shown = new Map();

  function addSection(name) {
    const copy = template.content.cloneNode(true).firstElementChild;
    const slash = name.indexOf("/");
    $("h3", copy).textContent = name.slice(slash + 1);
    $("h3", copy).title = name;
    const after = [...shown.keys()].sort().find((other) => other > name);
    list.insertBefore(copy, after ? shown.get(after) : null);
    shown.set(name, copy);
    return copy;
  }

  page.on("sensors", (sensors) => {
    section.hidden = sensors.length === 0;
    for (const [name, element] of shown) {
      if (!sensors.some((sensor) => sensor.name === name)) { element.remove(); shown.delete(name); }
    }
    for (const { name, values, error } of sensors) {
      const element = shown.get(name) || addSection(name);
      page.readings($("tbody", element), values, error, "");
    }
  });
})();
