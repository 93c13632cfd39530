// Shows notifications and opens their items. It handles no requests and stores nothing.
"use strict";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  let card = {};
  try {
    card = event.data.json();
  } catch {
    card = { title: "Sayso", path: "/", tag: "sayso" };
  }
  // The same tag replaces the notification before, so a closed item does not look open.
  event.waitUntil(self.registration.showNotification(card.title, {
    body: card.body,
    tag: card.tag,
    renotify: Boolean(card.alert),
    silent: !card.alert,
    icon: "/static/icon-192.png",
    data: { path: card.path },
  }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const address = new URL(event.notification.data.path, self.location.origin);
  const target = address.origin === self.location.origin ? address.href : `${self.location.origin}/`;
  event.waitUntil(open(target));
});

async function open(target) {
  const pages = await self.clients.matchAll({ type: "window" });
  const there = pages.find((page) => page.url === target);
  if (there) return there.focus();
  const inbox = pages.find((page) => new URL(page.url).pathname === "/");  // other pages may hold unsent input
  if (inbox) return (await inbox.navigate(target))?.focus();
  return self.clients.openWindow(target);
}
