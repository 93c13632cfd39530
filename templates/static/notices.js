// Notifications of an open page: of what a hidden one hears, and the offer to turn them on. live.js calls both.
(() => {
  "use strict";
  const { _ } = window.sayso;

  // A hidden page shows what it hears, once notifications are turned on, unless the browser's push service does.
  async function alertHidden(text) {
    if (!document.hidden || window.Notification?.permission !== "granted") return;
    const registration = await navigator.serviceWorker?.getRegistration();
    if (!registration || await registration.pushManager?.getSubscription()) return;
    registration.showNotification("Sayso", { body: text, tag: "inbox", icon: "/static/icon-192.png", data: { path: "/" } });
  }

  // Each person is offered notifications once in a browser, on the inbox.
  function offer(notice, notify) {
    const name = `offered ${document.querySelector(".who")?.textContent}`;
    if (location.pathname !== "/" || !("PushManager" in window) || window.Notification?.permission !== "default") return;
    try {
      if (localStorage.getItem(name)) return;
      localStorage.setItem(name, "1");
    } catch { return; } // without storage it would be offered on each page
    notify(_("This browser can notify you of items that wait for you."), _("Turn on notifications"), { href: "/me/notifications" });
    const later = Object.assign(document.createElement("button"), { type: "button", textContent: _("Not now") });
    later.addEventListener("click", () => notice.replaceChildren());
    notice.append(" ", later);
  }

  window.sayso.notices = { alertHidden, offer };
})();
