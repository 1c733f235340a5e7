"use strict";
/* Shared functions of live pages: updated times, the connection that sends changed parts, readings with their trend,
   dragging of graphs. The pages also work without this script, but do not update. */
const page = (() => {
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

  /* ---- the live connection: each key of a message has its handlers */

  const handlers = new Map([["patch", [patch]]]);
  const link = $("[data-link]");
  let wait = 500;
  let current = null; // the socket
  let reconnecting = false;

  function on(key, handler) {
    handlers.set(key, [...(handlers.get(key) || []), handler]);
  }

  function show(state, text) {
    if (!link || link.dataset.link === state) return;
    link.dataset.link = state;
    link.textContent = text;
  }

  /* `address` may extend the query of each connection, so that messages continue where the last connection ended. */
  function connect(address = () => {}) {
    if (!body.dataset.live) return;
    const url = new URL(body.dataset.live, location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    address(url);
    const socket = current = new WebSocket(url);
    let opened = false;
    socket.onopen = () => { opened = true; wait = 500; show("live", "live"); };
    socket.onmessage = (event) => {
      for (const [key, value] of Object.entries(JSON.parse(event.data))) {
        for (const handler of handlers.get(key) || []) handler(value);
      }
    };
    socket.onclose = () => {
      if (reconnecting) { reconnecting = false; connect(address); return; }
      show("lost", "not connected");
      if (!opened) signedOut();
      setTimeout(() => connect(address), wait * (0.75 + Math.random() / 2));
      wait = Math.min(wait * 2, 15000);
    };
  }

  /* Reconnect, after `data-live` has changed. */
  function reconnect() {
    if (!current || current.readyState > WebSocket.OPEN) return; // connects again anyway
    reconnecting = true;
    current.onmessage = null;
    current.close();
  }

  /* With a revoked key, show the login page instead of reconnecting forever. */
  async function signedOut() {
    const response = await fetch(location.href, { method: "HEAD", redirect: "manual" }).catch(() => null);
    if (response && response.status === 401) location.reload();
  }

  /* Continue after the newest line on the page. */
  function since(url) {
    const lines = $$("[data-seq]");
    if (lines.length) url.searchParams.set("since", String(Math.max(...lines.map((line) => Number(line.dataset.seq)))));
  }

  function patch(parts) {
    for (const [id, html] of Object.entries(parts)) {
      const element = document.getElementById(id);
      if (element) morph.node(element, morph.parse(html, element.parentNode));
    }
    health();
    tick();
    document.dispatchEvent(new Event("patched"));
  }

  /* The state of a machine in the title and in the icon of the tab. */
  function health() {
    const head = $("[data-title]"), icon = $("link[rel=icon]");
    if (!head) return;
    document.title = head.dataset.title;
    if (icon.getAttribute("href") !== head.dataset.icon) icon.href = head.dataset.icon;
  }

  /* ---- readings: a table of values, with the last minutes of each */

  const MAX_POINTS = 180;
  const tables = new Map();

  function readings(table, values, error, quiet = "once a second while this page is open") {
    const note = $("[data-readings-note]", table.closest("section") || document);
    note.textContent = error || quiet;
    note.classList.toggle("is-unhealthy", Boolean(error));
    note.classList.toggle("muted", !error);
    if (error) return;
    if (!tables.has(table)) tables.set(table, new Map());
    const rows = tables.get(table);
    for (const [key, { row }] of rows) {
      if (!values.some(([name]) => name === key)) { row.remove(); rows.delete(key); }
    }
    for (const [key, text, number] of values) {
      if (!rows.has(key)) rows.set(key, { row: addRow(table, key), points: [] });
      const { row, points } = rows.get(key);
      $(".value", row).textContent = text;
      if (number === null) continue;
      points.push([Date.now(), number]);
      if (points.length > MAX_POINTS) points.shift();
      drawTrend(row, points);
    }
  }

  function addRow(table, key) {
    const row = document.createElement("tr");
    for (const [name, text] of [["name", key], ["value", ""], ["trend", ""], ["ends", ""]]) {
      const cell = document.createElement("td");
      cell.className = name;
      if (name === "name") cell.setAttribute("role", "rowheader");
      cell.textContent = text;
      row.append(cell);
    }
    table.append(row);
    return row;
  }

  function drawTrend(row, points) {
    const numbers = points.map(([, number]) => number);
    const low = Math.min(...numbers), high = Math.max(...numbers);
    if (low === high && !$("svg", row)) return; // a constant value has no trend
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
    const start = points[0][0], length = Math.max(points[points.length - 1][0] - start, 1);
    const coordinates = points.map(([at, number]) => {
      const y = high > low ? 26 - 24 * (number - low) / (high - low) : 14;
      return `${(100 * (at - start) / length).toFixed(2)},${y.toFixed(2)}`;
    });
    $("polyline", svg).setAttribute("points", coordinates.join(" "));
    const ends = $(".ends", row);
    const text = (number) => String(Number(number.toPrecision(4)));
    ends.replaceChildren(...(high > low ? [text(high), document.createElement("br"), text(low)] : []));
  }

  /* ---- drag a graph with the mouse; touch and keys scroll it natively */

  let dragged = null;
  let from = null;
  let moved = false;
  addEventListener("pointerdown", (event) => {
    const graph = event.target.closest(".graph");
    if (!graph || event.pointerType !== "mouse" || event.button !== 0) return;
    dragged = graph;
    from = [event.clientX + graph.scrollLeft, event.clientY + graph.scrollTop];
    moved = false;
  });
  addEventListener("pointermove", (event) => {
    if (!dragged) return;
    const x = from[0] - event.clientX, y = from[1] - event.clientY;
    if (Math.abs(x - dragged.scrollLeft) + Math.abs(y - dragged.scrollTop) > 4) { moved = true; dragged.classList.add("panning"); }
    dragged.scrollTo(x, y);
  });
  addEventListener("pointerup", () => { if (dragged) dragged.classList.remove("panning"); dragged = null; });
  addEventListener("click", (event) => { if (moved && event.target.closest(".graph")) event.preventDefault(); moved = false; }, true);
  addEventListener("dragstart", (event) => { if (event.target.closest(".graph")) event.preventDefault(); });

  /* ---- new log lines: scroll to the end, except after scrolling up; hold lines back while paused */

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
    on("log", append);
    log.scrollTop = log.scrollHeight;
    for (const select of $$("[data-log-filter] select")) select.addEventListener("change", () => select.form.requestSubmit());
    $("[data-pause]")?.addEventListener("click", (event) => {
      paused = !paused;
      event.currentTarget.setAttribute("aria-pressed", String(paused));
      event.currentTarget.textContent = paused ? "Continue" : "Pause";
      if (!paused) { const lines = held; held = []; append(lines); }
    });
  }

  return { $, $$, on, connect, reconnect, since, readings, span, tick };
})();
