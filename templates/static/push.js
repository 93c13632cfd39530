// Turns on notifications of this browser. Permission is requested only after a click.
(() => {
  "use strict";
  const { _ } = window.sayso;
  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (sign) => sign.charCodeAt(0));
  const write = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const device = () => (navigator.userAgentData?.platform || navigator.platform || "browser") + (matchMedia("(display-mode: standalone)").matches ? ", app" : "");

  async function subscribe(form) {
    if ((await Notification.requestPermission()) !== "granted") {
      throw new Error(_("Notifications are blocked. Allow them for this site in the browser’s settings."));
    }
    const registration = await navigator.serviceWorker.register("/service-worker.js");
    await navigator.serviceWorker.ready;
    const key = bytes(form.dataset.key);
    const earlier = await registration.pushManager.getSubscription();
    const same = earlier && earlier.options.applicationServerKey && write(earlier.options.applicationServerKey) === form.dataset.key;
    if (earlier && !same) await earlier.unsubscribe();
    if (same) return earlier;
    try {
      return await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
    } catch {
      throw new Error(_("The push service of this browser cannot be reached. The inbox notifies you while it is open in a tab."));
    }
  }

  for (const form of document.querySelectorAll("form.push")) {
    const button = form.querySelector("button");
    const hint = form.querySelector("[role=status]");
    if (!("serviceWorker" in navigator) || !("PushManager" in window) || !("Notification" in window)) {
      hint.textContent = _("This browser cannot be notified here. It needs https, and on an iPhone the installed app.");
      continue;
    }
    button.disabled = false;
    hint.textContent = _("Your browser then asks for your permission.");
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      try {
        const subscription = await subscribe(form);
        form.elements.endpoint.value = subscription.endpoint;
        form.elements.p256dh.value = write(subscription.getKey("p256dh"));
        form.elements.auth.value = write(subscription.getKey("auth"));
        form.elements.label.value = device();
        form.submit();
      } catch (error) {
        hint.textContent = error.message;
        button.disabled = false;
      }
    });
  }
})();
