"use strict";
/* Live parts of the pages. Everything works without this script, except that nothing moves by itself. */
(() => {
  const body = document.body;
  const skew = Date.now() - Date.parse(body.dataset.now);
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  /* ---- times */

  function span(seconds) {
    for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
      if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
    }
    return `${Math.max(0, Math.floor(seconds))} s`;
  }

  function tick() {
    const now = Date.now() - skew;
    for (const time of $$("time[data-ago]")) {
      const text = span((now - Date.parse(time.dateTime)) / 1000);
      if (time.textContent !== text) time.textContent = text;
    }
  }
  setInterval(tick, 1000);

  /* ---- the live connection */

  const link = $("[data-link]");
  let wait = 500;

  function show(state, text) {
    if (!link || link.dataset.link === state) return;
    link.dataset.link = state;
    link.textContent = text;
  }

  function address() {
    const url = new URL(body.dataset.live, location.href);
    const last = $("#log > li:last-child");
    if (last && last.dataset.seq) url.searchParams.set("since", last.dataset.seq);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    return url;
  }

  function connect() {
    const socket = new WebSocket(address());
    socket.onopen = () => { wait = 500; show("live", "live"); };
    socket.onmessage = (event) => {
      const message = JSON.parse(event.data);
      if (message.patch) patch(message.patch);
      if (message.readings) readings(message.readings);
      if (message.log) append(message.log);
    };
    socket.onclose = () => {
      show("lost", "not connected");
      setTimeout(connect, wait * (0.75 + Math.random() / 2));
      wait = Math.min(wait * 2, 15000);
    };
  }

  function patch(parts) {
    for (const [id, html] of Object.entries(parts)) {
      const element = document.getElementById(id);
      if (element) morph.node(element, morph.parse(html, element.parentNode));
    }
    tick();
  }

  /* ---- readings: the last minutes are kept here */

  const KEPT = 180;
  const history = new Map();
  const rows = new Map();

  function readings({ values, error }) {
    const note = $("[data-readings-note]");
    note.textContent = error || "once a second while this page is open";
    note.classList.toggle("is-unhealthy", Boolean(error));
    note.classList.toggle("muted", !error);
    if (error) return;
    for (const key of [...rows.keys()]) {
      if (!values.some(([name]) => name === key)) { rows.get(key).remove(); rows.delete(key); history.delete(key); }
    }
    for (const [key, text, number] of values) {
      if (!rows.has(key)) rows.set(key, reading(key));
      const row = rows.get(key);
      $(".value", row).textContent = text;
      if (number === null) continue;
      const seen = history.get(key) || [];
      seen.push([Date.now(), number]);
      if (seen.length > KEPT) seen.shift();
      history.set(key, seen);
      spark(row, seen);
    }
  }

  function reading(key) {
    const row = document.createElement("tr");
    for (const [name, text] of [["name", key], ["value", ""], ["trend", ""], ["ends", ""]]) {
      const cell = document.createElement("td");
      cell.className = name;
      cell.textContent = text;
      row.append(cell);
    }
    $("[data-readings]").append(row);
    return row;
  }

  function spark(row, seen) {
    if (seen.length < 2) return;
    const space = "http://www.w3.org/2000/svg";
    let svg = $("svg", row);
    if (!svg) {
      svg = document.createElementNS(space, "svg");
      svg.setAttribute("viewBox", "0 0 100 28");
      svg.setAttribute("preserveAspectRatio", "none");
      svg.setAttribute("aria-hidden", "true");
      svg.append(document.createElementNS(space, "polyline"));
      $(".trend", row).append(svg);
    }
    const numbers = seen.map(([, number]) => number);
    const low = Math.min(...numbers), high = Math.max(...numbers);
    const start = seen[0][0], length = Math.max(seen[seen.length - 1][0] - start, 1);
    const points = seen.map(([at, number]) => {
      const y = high > low ? 26 - 24 * (number - low) / (high - low) : 14;
      return `${(100 * (at - start) / length).toFixed(2)},${y.toFixed(2)}`;
    });
    $("polyline", svg).setAttribute("points", points.join(" "));
    const ends = $(".ends", row);
    const text = (number) => String(Number(number.toPrecision(4)));
    ends.replaceChildren(text(high), document.createElement("br"), text(low));
  }

  /* ---- camera: the next image is asked for when the one before is there */

  for (const image of $$("[data-camera]")) {
    const source = image.getAttribute("src");
    const note = $("[data-image-note]");
    const next = (delay) => setTimeout(() => {
      if (document.hidden) next(delay); else image.src = `${source}?t=${Date.now()}`;
    }, delay);
    image.addEventListener("load", () => { note.textContent = ""; next(500); });
    image.addEventListener("error", () => { note.textContent = "no image now"; next(3000); });
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

  /* ---- logs */

  const log = $("#log");
  const LINES = 1000;
  let paused = false;
  let held = [];

  function append(lines) {
    if (paused) { held = held.concat(lines).slice(-LINES); return; }
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    $(".empty", log)?.remove();
    for (const line of lines) log.append(morph.parse(line, log));
    while (log.children.length > LINES) log.firstElementChild.remove();
    if (atEnd) log.scrollTop = log.scrollHeight;
  }

  if (log) {
    log.scrollTop = log.scrollHeight;
    const form = $("[data-log-filter]");
    for (const select of $$("select", form)) select.addEventListener("change", () => form.requestSubmit());
    $("[data-pause]").addEventListener("click", (event) => {
      paused = !paused;
      event.currentTarget.setAttribute("aria-pressed", String(paused));
      event.currentTarget.textContent = paused ? "Continue" : "Pause";
      if (!paused) { const lines = held; held = []; append(lines); }
    });
  }

  /* ---- the graph is dragged with a mouse; fingers and keys scroll it anyway */

  const graph = $("#graph");
  if (graph) {
    let from = null;
    let moved = false;
    graph.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "mouse" || event.button !== 0) return;
      from = [event.clientX + graph.scrollLeft, event.clientY + graph.scrollTop];
      moved = false;
    });
    addEventListener("pointermove", (event) => {
      if (!from) return;
      const x = from[0] - event.clientX, y = from[1] - event.clientY;
      if (Math.abs(x - graph.scrollLeft) + Math.abs(y - graph.scrollTop) > 4) { moved = true; graph.classList.add("panning"); }
      graph.scrollTo(x, y);
    });
    addEventListener("pointerup", () => { from = null; graph.classList.remove("panning"); });
    graph.addEventListener("click", (event) => { if (moved) event.preventDefault(); moved = false; }, true);
    graph.addEventListener("dragstart", (event) => event.preventDefault());
  }

  if (body.dataset.live) connect();
})();
