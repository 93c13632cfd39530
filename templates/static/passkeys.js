// Has a passkey sign what a form sends: a sign-in, a decision, or a new passkey. Without this script, and in browsers
// without passkeys, a form that is hidden stays so, and the desk refuses a decision that is not signed.
(() => {
  "use strict";
  const { _ } = window.sayso;
  if (!window.PublicKeyCredential?.parseRequestOptionsFromJSON) return;

  async function read(form, submitter) {
    const place = form.dataset.options ?? `${location.pathname}/sign`;
    const response = await fetch(place, { method: "POST", body: new URLSearchParams(new FormData(form, submitter)) });
    const options = await response.json();
    if (!response.ok) throw new Error(options.detail);
    return options;
  }

  async function sign(options) {
    const isNew = "rp" in options;
    const publicKey = isNew ? PublicKeyCredential.parseCreationOptionsFromJSON(options) : PublicKeyCredential.parseRequestOptionsFromJSON(options);
    try {
      const { id, response } = (await navigator.credentials[isNew ? "create" : "get"]({ publicKey })).toJSON();
      const facts = { credential_id: id, client_data: response.clientDataJSON };
      if (isNew) return { ...facts, attestation: response.attestationObject };
      const signed = { ...facts, authenticator_data: response.authenticatorData, signature: response.signature, user_handle: response.userHandle ?? "" };
      return options.nonce ? { ...signed, nonce: options.nonce } : signed;
    } catch (error) {
      throw new Error(error.name === "InvalidStateError" ? _("This device has a passkey for you already.") : _("No passkey was used. Try again."));
    }
  }

  let busy = false;

  document.addEventListener("submit", async (event) => {
    const { target: form, submitter } = event;
    const signed = form.elements.signed;
    if (event.defaultPrevented || !signed || signed.value || form.elements.code?.value || submitter?.name === "step" || submitter?.formMethod === "dialog") return;
    event.preventDefault();
    if (busy) return;
    busy = true;
    const status = form.querySelector("[role=status]") ?? document.getElementById("signing");
    status.textContent = _("Use your passkey now.");
    try {
      signed.value = JSON.stringify(await sign(await read(form, submitter)));
      status.textContent = form.isConnected ? "" : _("The page has changed. Check it and try again.");
      if (form.isConnected) form.requestSubmit(submitter);
    } catch (error) {
      status.textContent = error.message;
      status.scrollIntoView({ block: "nearest" });
    } finally {
      busy = false;
    }
  });

  for (const form of document.querySelectorAll("form[data-options]")) form.hidden = false;
  // What was signed counts once: a page that a browser goes back to signs anew.
  addEventListener("pageshow", () => {
    for (const signed of document.querySelectorAll("[name=signed]")) signed.value = "";
  });
})();
