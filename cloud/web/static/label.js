"use strict";
/* The labeller: one picture, its tags and boxes, by mouse, touch or keys. Saving is in annotations.js. */
(() => {
  const { $, $$ } = page;
  const root = $("[data-labeller]");
  const { path, query } = root.dataset;
  const stage = $("[data-stage]"), image = $("[data-image]"), layer = $("[data-boxes]"), canvas = $("[data-canvas]");
  const STEP = 0.005; // share of the picture that an arrow key moves an edge
  const LEAST = 0.002; // smallest width and height of a box
  const FRESH = 20000; // milliseconds for which a picture that was loaded ahead is used
  const RECOUNT = 60000; // milliseconds after which the labels of the dataset, which others change too, are loaded again
  const KEYS = "1234567890";

  const pictures = new Map(); // annotations.Picture by id: those with unsaved changes stay until they are saved
  const ahead = new Map(); // id: {at, info}
  let info = null; // of the picture on the page
  let shown = null; // its annotations.Picture
  let labels = []; // of the dataset, with counts of their pictures
  let countedAt = -Infinity;
  const trail = []; // ids of the pictures that were shown before; they may not match the filter any more
  let selected = ""; // id of a box
  let brush = ""; // label of the next box
  let zoom = 1;

  const option = (name) => $(`[data-option=${name}]`).checked;
  const mode = () => $("[name=mode]:checked").value;
  const address = (id, what = "pictures") => `${path}/${what}/${id}${query ? `?${query}` : ""}`;
  const colorOf = (name) => (labels.find((label) => label.name === name) || { color: "#838b96" }).color;

  /* ---- pictures */

  async function load(id) {
    const kept = ahead.get(id);
    ahead.delete(id);
    if (kept && Date.now() - kept.at < FRESH) return kept.info;
    const begin = Date.now(), recount = begin - countedAt > RECOUNT;
    const url = address(id) + (recount ? "" : `${query ? "&" : "?"}counts=no`);
    const response = await fetch(url, { headers: { accept: "application/json" } });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error || `The cloud answered ${response.status}.`);
    if (answer.labels) { labels = answer.labels; countedAt = begin; }
    return answer;
  }

  function prepare(id) {
    if (!id || ahead.has(id)) return;
    const entry = { at: Date.now(), info: load(id) }, next = new Image();
    next.src = `/files/${id}`;
    Promise.all([entry.info, next.decode()]).then(() => { root.dataset.ahead = id; }, () => {});
    entry.info.catch(() => ahead.delete(id));
    ahead.clear();
    ahead.set(id, entry);
  }

  let opening = "";
  async function open(id, back = false) {
    if (!id || opening === id) return;
    opening = id;
    try {
      const next = await load(id);
      if (opening !== id) return; // another one was opened meanwhile
      if (back) trail.pop(); else if (info) trail.push(info.id);
      info = next;
    } catch (error) {
      report(error.message, [["Try again", () => open(id, back)]]);
      return;
    } finally {
      if (opening === id) opening = "";
    }
    selected = "";
    if (!pictures.has(id)) pictures.set(id, new annotations.Picture(address(id), info.annotations, changed, counted));
    shown = pictures.get(id);
    if (root.dataset.picture !== id || image.getAttribute("src") !== `/files/${id}`) {
      image.src = `/files/${id}`;
      image.alt = info.name;
      root.dataset.picture = id;
      history.replaceState(null, "", address(id, "label"));
    }
    $("[data-position]").textContent = info.position ? `${info.position} of ${info.count}` : `${info.count || "none"} left`;
    $("[data-end]").textContent = "";
    $("[data-where]").textContent = `${info.name}, ${info.where}, ${info.captured.slice(0, 19).replace("T", " ")} UTC`;
    $("[data-remove]").action = `${path}/pictures/${id}/remove`;
    const suggestion = info.suggested.length ? `A model suggests ${info.suggested.join(" and ")}.`
      : info.annotations.boxes.some((box) => box.suggested) ? "A model suggests the dashed boxes." : "";
    $("[data-suspicion]").hidden = !info.suspicion && !suggestion;
    $("[data-suspicion-text]").textContent = `${info.suspicion} ${suggestion}`.trim();
    $("[data-right]").textContent = info.suspicion ? "The labels are right" : "Accept";
    for (const button of $$("[data-go]")) button.disabled = !neighbour(button.dataset.go);
    draw();
    changed();
    prepare(info.next);
  }

  /* Apply a save to the counts. With a label that the page does not have, the next picture brings all labels. */
  function counted(changes) {
    for (const [name, change] of Object.entries(changes)) {
      const entry = labels.find((label) => label.name === name);
      if (entry) entry.pictures += change; else countedAt = -Infinity;
    }
  }

  /* A picture that was labelled leaves the filter "without labels"; the way back to it must not end there. */
  const neighbour = (where) => (where === "previous" && trail.at(-1)) || info[where];

  function go(where) {
    if (!info) return;
    const id = neighbour(where);
    if (id) open(id, where === "previous");
    else $("[data-end]").textContent = `This is the ${where === "next" ? "last" : "first"} picture.`;
  }

  /* ---- saving: its state, and what could not be saved */

  function changed() {
    for (const [id, picture] of pictures) {
      if (picture !== shown && picture.saved && !picture.trouble && !picture.conflict) pictures.delete(id);
    }
    const unsaved = [...pictures.entries()].filter(([, picture]) => !picture.saved);
    const state = unsaved.length === 0 ? "saved" : unsaved.some(([, one]) => one.trouble || one.conflict) ? "not saved" : "saving";
    const status = $("[data-saved]");
    status.dataset.saved = state;
    const text = state + (unsaved.length > 1 ? ` (${unsaved.length} pictures)` : "");
    if (status.textContent !== text) status.textContent = text;
    const troubled = unsaved.find(([, picture]) => picture.conflict || picture.trouble);
    if (!troubled) report("");
    else if (troubled[1].conflict) inConflict(...troubled);
    else failed(...troubled);
    draw();
  }

  function failed(id, picture) {
    const again = picture.retryAt ? " It is being saved again until that works; keep this page open." : "";
    report(`A picture is not saved. ${picture.trouble}${again}`, [["Save again", () => picture.save()], ...show(id)]);
  }

  function inConflict(id, picture) {
    const count = picture.conflict.conflicts.length;
    report(`Another person has changed ${count === 1 ? "a box" : `${count} boxes`} that you have changed, too.`, [
      ["Keep mine", () => picture.decide(true)], ["Use theirs", () => picture.decide(false)], ...show(id),
    ]);
  }

  const show = (id) => (info && info.id === id ? [] : [["Show the picture", () => open(id)]]);

  function report(text, actions = []) {
    const key = text + actions.map(([name]) => name).join();
    const place = $("[data-trouble]");
    if (place.dataset.key === key) return;
    place.dataset.key = key;
    place.hidden = !text;
    $("[data-trouble-text]").textContent = text;
    $("[data-trouble-actions]").replaceChildren(...actions.map(([name, act]) => button(name, act)));
  }

  addEventListener("beforeunload", (event) => {
    const unsaved = [...pictures.values()].filter((picture) => !picture.saved);
    for (const picture of unsaved) picture.save();
    if (unsaved.length) event.preventDefault();
  });

  /* ---- labels */

  function button(text, act) {
    const created = document.createElement("button");
    created.type = "button";
    created.textContent = text;
    created.addEventListener("click", act);
    return created;
  }

  function swatch(color) {
    const space = "http://www.w3.org/2000/svg", svg = document.createElementNS(space, "svg");
    const rect = document.createElementNS(space, "rect");
    svg.setAttribute("viewBox", "0 0 10 10");
    svg.setAttribute("class", "swatch");
    svg.setAttribute("aria-hidden", "true");
    for (const [name, value] of [["width", 10], ["height", 10], ["rx", 2], ["fill", color]]) rect.setAttribute(name, value);
    svg.append(rect);
    return svg;
  }

  function span(text, name = "") {
    const created = document.createElement("span");
    created.textContent = text;
    created.className = name;
    return created;
  }

  function drawPalette() {
    const state = shown ? shown.state : { tags: [], boxes: [] };
    const box = state.boxes.find((one) => one.id === selected);
    fill($("[data-palette]"), labels, (label) => label.name, (label, at) => {
      const entry = button("", () => choose(label.name));
      const key = document.createElement("kbd");
      key.textContent = KEYS[at] || "";
      entry.append(key, swatch(label.color), span(label.name), span(String(label.pictures), "muted"));
      return entry;
    }, (entry, label) => {
      const on = mode() === "tags" ? state.tags.includes(label.name) : (box ? box.label : brush) === label.name;
      entry.setAttribute("aria-pressed", String(on));
      entry.lastChild.textContent = String(label.pictures);
      $("rect", entry).setAttribute("fill", label.color);
    });
  }

  /* Keep the elements of a list, so that focus is kept. */
  function fill(list, values, keyOf, create, update) {
    const have = new Map([...list.children].map((entry) => [entry.dataset.key, entry]));
    const keys = new Set(values.map((value) => String(keyOf(value))));
    for (const [key, entry] of have) if (!keys.has(key)) entry.remove();
    values.forEach((value, at) => {
      const key = String(keyOf(value));
      let entry = have.get(key);
      if (!entry) {
        entry = document.createElement("li");
        entry.dataset.key = key;
        entry.append(create(value, at));
      }
      if (list.children[at] !== entry) list.insertBefore(entry, list.children[at] || null);
      update(entry.firstElementChild, value, at);
    });
  }

  /* A label was chosen by its key or button. */
  function choose(name) {
    if (!shown) return;
    brush = name;
    if (mode() === "boxes") {
      if (selected) change((state) => { annotations.confirmed(boxIn(state, selected)).label = name; });
      drawPalette();
      return;
    }
    const had = shown.state.tags.includes(name);
    change((state) => {
      const others = option("single") ? labels.map((label) => label.name) : [];
      state.tags = state.tags.filter((tag) => tag !== name && (had || !others.includes(tag)));
      if (!had) state.tags.push(name);
    });
    if (!had && option("advance")) go("next");
  }

  function change(edit, join = false) { if (shown) shown.change(edit, join); }
  const boxIn = (state, id) => state.boxes.find((box) => box.id === id);

  $("[data-add-label]").addEventListener("submit", async (event) => {
    event.preventDefault();
    const form = event.currentTarget, say = $("[data-add-error]");
    try {
      const response = await fetch(`${path}/add-label`, {
        method: "POST", headers: { accept: "application/json" }, body: new URLSearchParams(new FormData(form)),
      });
      const answer = await response.json();
      say.textContent = response.ok ? "" : answer.error;
      if (!response.ok) return;
      labels = answer.labels;
      form.reset();
      draw();
    } catch (error) {
      say.textContent = "The cloud does not answer: the label was not added.";
    }
  });

  /* ---- drawing the state */

  function draw() {
    if (!shown) return;
    const { tags, boxes } = shown.state;
    if (selected && !boxes.some((box) => box.id === selected)) selected = "";
    drawPalette();
    fill($("[data-tags]"), [...tags].sort(), (tag) => tag, (tag) => {
      const entry = button("", () => change((state) => { state.tags = state.tags.filter((one) => one !== tag); }));
      entry.setAttribute("aria-label", `Remove the tag ${tag}`);
      entry.append(swatch(colorOf(tag)), span(tag), span("×", "muted"));
      return entry;
    }, () => {});
    fill($("[data-box-list]"), boxes, (box) => box.id, (box) => button("", () => select(box.id, true)), (entry, box) => {
      entry.textContent = box.label;
      entry.setAttribute("aria-pressed", String(box.id === selected));
    });
    const have = new Map($$(".box", layer).map((element) => [element.dataset.id, element]));
    for (const [id, element] of have) if (!boxIn(shown.state, id)) element.remove();
    boxes.forEach((box, at) => {
      let element = have.get(box.id);
      if (!element) {
        element = $("#box").content.cloneNode(true).firstElementChild;
        element.dataset.id = box.id;
        element.addEventListener("focus", () => select(box.id));
      }
      if (layer.children[at] !== element) layer.insertBefore(element, layer.children[at] || null);
      place(element, box);
      const percent = (share) => `${Math.round(share * 100)} %`;
      element.setAttribute("aria-pressed", String(box.id === selected));
      element.setAttribute("aria-label", `${box.suggested ? "suggested by a model: " : ""}${box.label}, box ${at + 1} of ${boxes.length}, ${percent(box.x_min)} from the left, ` +
        `${percent(box.y_min)} from the top, ${percent(box.x_max - box.x_min)} wide, ${percent(box.y_max - box.y_min)} high`);
      element.classList.toggle("suggested", Boolean(box.suggested));
      $(".box-label", element).textContent = box.label;
    });
    stage.classList.toggle("drawing", mode() === "boxes");
  }

  function place(element, box) {
    element.style.left = `${box.x_min * 100}%`;
    element.style.top = `${box.y_min * 100}%`;
    element.style.width = `${(box.x_max - box.x_min) * 100}%`;
    element.style.height = `${(box.y_max - box.y_min) * 100}%`;
    element.style.setProperty("--color", colorOf(box.label));
  }

  function select(id, focus = false) {
    if (selected !== id) { selected = id; if (id) setMode("boxes"); draw(); }
    if (focus && id) $(`.box[data-id="${id}"]`)?.focus({ preventScroll: true });
    if (!id && document.activeElement?.closest(".box")) document.activeElement.blur();
  }

  function setMode(name) {
    $(`[name=mode][value=${name}]`).checked = true;
    draw();
    keep();
  }
  for (const input of $$("[name=mode]")) input.addEventListener("change", () => { if (mode() === "tags") select(""); draw(); keep(); });

  /* ---- choices that this browser remembers: the options, and for each dataset whether tags or boxes are labelled */

  function keep() {
    const options = Object.fromEntries($$("[data-option]").map((input) => [input.dataset.option, input.checked]));
    try {
      localStorage.setItem("labeller", JSON.stringify(options));
      localStorage.setItem(`labeller ${path}`, mode());
    } catch (error) { /* the browser stores nothing: the choices end with the page */ }
  }

  function restore() {
    try {
      const options = JSON.parse(localStorage.getItem("labeller") || "{}");
      for (const input of $$("[data-option]")) input.checked = options[input.dataset.option] ?? input.checked;
      if (localStorage.getItem(`labeller ${path}`) === "boxes") $("[name=mode][value=boxes]").checked = true;
    } catch (error) { /* nothing was stored */ }
  }
  for (const input of $$("[data-option]")) input.addEventListener("change", keep);

  /* ---- boxes by mouse or touch */

  const clamp = (value, low = 0, high = 1) => Math.min(high, Math.max(low, value));
  function at(event) {
    const area = stage.getBoundingClientRect();
    return [clamp((event.clientX - area.left) / area.width), clamp((event.clientY - area.top) / area.height)];
  }
  const label = () => brush || (labels[0] ? labels[0].name : "");

  let drag = null; // {id, kind, from, box}: kind is new, move, or a handle
  image.addEventListener("load", () => stage.style.setProperty("--shape", image.naturalWidth / image.naturalHeight));
  if (image.complete && image.naturalHeight) image.dispatchEvent(new Event("load"));

  stage.addEventListener("pointerdown", (event) => {
    if (!shown || event.button !== 0 || drag) return;
    const element = event.target.closest(".box"), handle = event.target.dataset.handle;
    if (mode() !== "boxes" && !element) return;
    event.preventDefault();
    const from = at(event);
    if (element && (handle || element.dataset.id === selected) && !event.shiftKey) {
      drag = { id: element.dataset.id, kind: handle || "move", from, box: { ...boxIn(shown.state, element.dataset.id) } };
    } else {
      drag = { id: "", kind: "new", from, over: element ? element.dataset.id : "" };
    }
    drag.pointer = event.pointerId;
    drag.started = false;
    stage.setPointerCapture(event.pointerId);
  });

  stage.addEventListener("pointermove", (event) => {
    if (!drag || event.pointerId !== drag.pointer) return;
    const [x, y] = at(event), area = stage.getBoundingClientRect();
    const distance = Math.hypot((x - drag.from[0]) * area.width, (y - drag.from[1]) * area.height);
    if (!drag.started && distance < 4) return;
    if (drag.kind === "new" && (mode() !== "boxes" || !label())) {
      if (mode() === "boxes") report("Add a label first: a box needs one.", []);
      return;
    }
    const box = changedBox(x, y);
    if (!box) return;
    const join = drag.started;
    drag.started = true;
    change((state) => {
      const old = boxIn(state, box.id);
      if (old) annotations.confirmed(Object.assign(old, box)); else state.boxes.push(box);
    }, join);
    selected = box.id;
    draw();
  });

  function changedBox(x, y) {
    if (drag.kind === "new") {
      if (!drag.id) drag.id = annotations.newId();
      const [left, right] = [Math.min(x, drag.from[0]), Math.max(x, drag.from[0])];
      const [top, bottom] = [Math.min(y, drag.from[1]), Math.max(y, drag.from[1])];
      if (right - left < LEAST || bottom - top < LEAST) return null;
      return { id: drag.id, label: label(), x_min: left, y_min: top, x_max: right, y_max: bottom };
    }
    const box = { ...drag.box }, dx = x - drag.from[0], dy = y - drag.from[1];
    if (drag.kind === "move") return moved(box, dx, dy);
    if (drag.kind.includes("w")) box.x_min = clamp(box.x_min + dx, 0, box.x_max - LEAST);
    if (drag.kind.includes("e")) box.x_max = clamp(box.x_max + dx, box.x_min + LEAST, 1);
    if (drag.kind.includes("n")) box.y_min = clamp(box.y_min + dy, 0, box.y_max - LEAST);
    if (drag.kind.includes("s")) box.y_max = clamp(box.y_max + dy, box.y_min + LEAST, 1);
    return box;
  }

  function moved(box, dx, dy) {
    const width = box.x_max - box.x_min, height = box.y_max - box.y_min;
    const left = clamp(box.x_min + dx, 0, 1 - width), top = clamp(box.y_min + dy, 0, 1 - height);
    return { ...box, x_min: left, y_min: top, x_max: Math.min(1, left + width), y_max: Math.min(1, top + height) };
  }

  function released(event) {
    if (!drag || event.pointerId !== drag.pointer) return;
    const ended = drag;
    drag = null;
    if (!ended.started && ended.kind === "new") select(ended.over, true); // a click
    else if (ended.id) select(ended.id, true);
  }
  stage.addEventListener("pointerup", released);
  stage.addEventListener("pointercancel", released);

  function newBox() {
    if (!shown) return;
    if (!label()) { report("Add a label first: a box needs one.", []); return; }
    const box = { id: annotations.newId(), label: label(), x_min: 0.4, y_min: 0.4, x_max: 0.6, y_max: 0.6 };
    setMode("boxes");
    change((state) => { state.boxes.push(box); });
    select(box.id, true);
  }

  /* ---- keys */

  const MOVES = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };
  const COMMANDS = {
    n: () => go("next"), p: () => go("previous"), PageDown: () => go("next"), PageUp: () => go("previous"),
    m: () => { setMode(mode() === "tags" ? "boxes" : "tags"); if (mode() === "tags") select(""); },
    b: newBox, c: right, Escape: () => select(""),
    "+": () => scale(1.25), "-": () => scale(0.8), "?": help,
    Delete: removeBox, Backspace: removeBox,
  };

  function removeBox() {
    if (!selected) return;
    change((state) => { state.boxes = state.boxes.filter((box) => box.id !== selected); });
    select("");
  }

  function right() { if (shown) { shown.right(info.suggested); $("[data-suspicion]").hidden = true; go("next"); } }

  function help() {
    const keys = $("[data-keys]");
    keys.open = !keys.open;
    if (keys.open) keys.scrollIntoView({ block: "nearest" });
  }

  function scale(factor) {
    zoom = clamp(zoom * factor, 1, 8);
    canvas.classList.toggle("zoomed", zoom > 1);
    stage.style.setProperty("--zoom", zoom);
  }

  function arrow(key, shift) {
    const [dx, dy] = MOVES[key];
    if (!selected) { if (dy) return false; go(dx > 0 ? "next" : "previous"); return true; }
    change((state) => {
      const box = annotations.confirmed(boxIn(state, selected));
      if (shift) {
        box.x_max = clamp(box.x_max + dx, box.x_min + LEAST, 1);
        box.y_max = clamp(box.y_max + dy, box.y_min + LEAST, 1);
      } else Object.assign(box, moved(box, dx, dy));
    });
    return true;
  }

  addEventListener("keydown", (event) => {
    if (event.target.closest("input:not([type=radio], [type=checkbox]), textarea, select") || !shown) return;
    if ((event.ctrlKey || event.metaKey) && !event.altKey) {
      const key = event.key.toLowerCase();
      if (key === "z" && !event.shiftKey) shown.undo();
      else if (key === "y" || key === "z") shown.redo();
      else return;
      event.preventDefault();
      draw();
      return;
    }
    if (event.altKey || event.metaKey || event.ctrlKey || !option("keys")) return;
    const number = KEYS.indexOf(event.key);
    if (event.target.type === "radio" && event.key in MOVES) return; // changes the radio button
    if (number >= 0) { if (labels[number]) choose(labels[number].name); }
    else if (event.key in MOVES) { if (!arrow(event.key, event.shiftKey)) return; }
    else if (event.key in COMMANDS) COMMANDS[event.key]();
    else return;
    event.preventDefault();
  });

  for (const one of $$("[data-go]")) one.addEventListener("click", () => go(one.dataset.go));
  $("[data-new-box]").addEventListener("click", newBox);
  $("[data-right]").addEventListener("click", right);
  $("[data-remove]").addEventListener("submit", (event) => {
    if (!confirm("Remove this picture from the dataset?")) event.preventDefault();
  });

  restore();
  open(root.dataset.picture);
})();
