"use strict";
/* The threshold of a report: precision and recall of a label, from the probabilities of pictures, or the counts of a detector. */
(async () => {
  const { $ } = page;
  const root = $("[data-threshold]");
  if (!root) return;
  const response = await fetch(root.dataset.threshold, { headers: { accept: "application/json" } }).catch(() => null);
  if (!response || !response.ok) return;
  const { labels, exclusive, sets, pictures, counts } = await response.json();
  const set = $("[data-set]", root), label = $("[data-label]", root), slider = $("[data-slider]", root);
  const names = { test: "of the test", "cross-validation": "of the cross-validation" };
  for (const [name, rows] of Object.entries(sets)) if (rows.length) set.append(new Option(`${rows.length} ${names[name]}`, name));
  if (counts.length) set.append(new Option(`${pictures} ${names.test}`, "test"));
  labels.forEach((name, at) => label.append(new Option(name, at)));
  if (!set.options.length || !labels.length) return;
  root.hidden = false;

  /* With one label for each picture, the model answers its most probable label, or nothing below the threshold. */
  function answers(probabilities, at, threshold) {
    return probabilities[at] >= threshold && (!exclusive || probabilities[at] === Math.max(...probabilities));
  }

  function figures(at, threshold) {
    if (counts.length) {
      const { boxes, answers, right } = counts[at], step = Math.round(100 * threshold);
      return shares(right[step], answers[step], boxes);
    }
    let right = 0, said = 0, have = 0;
    for (const [truth, probabilities] of sets[set.value]) {
      const has = truth.includes(at), answered = answers(probabilities, at, threshold);
      have += has; said += answered; right += has && answered;
    }
    return shares(right, said, have);
  }

  function shares(right, said, have) {
    return { right, said, have, precision: said ? right / said : null, recall: have ? right / have : null };
  }

  const percent = (share) => (share === null ? "–" : `${Math.round(100 * share)} %`);

  function show() {
    const at = Number(label.value), threshold = Number(slider.value);
    const { right, said, have, precision, recall } = figures(at, threshold);
    $("[data-value]", root).textContent = threshold.toFixed(2);
    $("[data-result]", root).textContent = `Precision ${percent(precision)}: ${right} of ${said} answers are right. ` +
      `Recall ${percent(recall)}: ${right} of ${have} ${counts.length ? "boxes" : "pictures"} are found.`;
    const space = "http://www.w3.org/2000/svg", plot = $("[data-plot]", root), lines = { precision: [], recall: [] };
    for (let step = 0; step <= 50; step += 1) {
      const here = figures(at, step / 50);
      for (const name of Object.keys(lines)) {
        if (here[name] !== null) lines[name].push(`${(step * 6.4).toFixed(1)},${(120 - 120 * here[name]).toFixed(1)}`);
      }
    }
    const drawn = Object.entries(lines).map(([name, points]) => {
      const line = document.createElementNS(space, "polyline");
      line.setAttribute("class", `line-${name}`);
      line.setAttribute("points", points.join(" "));
      return line;
    });
    const mark = document.createElementNS(space, "line");
    for (const [name, value] of [["x1", threshold * 320], ["x2", threshold * 320], ["y1", -4], ["y2", 124], ["class", "mark"]]) {
      mark.setAttribute(name, value);
    }
    plot.replaceChildren(...drawn, mark);
  }

  for (const input of [set, label, slider]) input.addEventListener("input", show);
  show();
})();
