"use strict";
/* Changes an element in place to match another one, so that focus, scroll position and typed text are kept. */
const morph = (() => {
  const typed = new Set(["INPUT", "TEXTAREA", "SELECT"]);

  function attributes(from, to) {
    for (const { name } of [...from.attributes]) {
      if (!to.hasAttribute(name) && !(name === "open" && from.tagName === "DETAILS")) from.removeAttribute(name);
    }
    for (const { name, value } of to.attributes) {
      if (from.getAttribute(name) !== value) from.setAttribute(name, value);
    }
  }

  function same(from, to) {
    return from && from.nodeType === to.nodeType && from.nodeName === to.nodeName && (from.id || "") === (to.id || "");
  }

  function children(from, to) {
    let here = from.firstChild;
    for (const target of [...to.childNodes]) {
      let match = here;
      if (!same(match, target) && target.id) {
        match = [...from.childNodes].find((node) => node.id === target.id && node.nodeName === target.nodeName);
      }
      if (same(match, target)) {
        if (match === here) here = here.nextSibling;
        else from.insertBefore(match, here);
        node(match, target);
      } else {
        from.insertBefore(target, here);
      }
    }
    while (here) {
      const next = here.nextSibling;
      here.remove();
      here = next;
    }
  }

  function node(from, to) {
    if (from.nodeType !== Node.ELEMENT_NODE) {
      if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
      return;
    }
    if (typed.has(from.tagName)) return;
    attributes(from, to);
    children(from, to);
  }

  /* Parse the HTML of one element as a child of `parent`. */
  function parse(html, parent) {
    const template = document.createElement("template");
    if (parent.namespaceURI === "http://www.w3.org/2000/svg") {
      template.innerHTML = `<svg>${html}</svg>`;
      return template.content.firstElementChild.firstElementChild;
    }
    template.innerHTML = html;
    return template.content.firstElementChild;
  }

  return { node, parse };
})();
