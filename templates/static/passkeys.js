// Has a passkey sign what a form sends: a sign-in, or a new passkey. The form is hidden without this script, and in
// browsers without passkeys.
(() => {
  "use strict";
  const { _ } = window.sayso;
  if (!window.PublicKeyCredential?.parseRequestOptionsFromJSON) return;

  async function read(form, submitter) {
    const response = await fetch(form.dataset.options, { method: "POST", body: new URLSearchParams(new FormData(form, submitter)) });
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
      return { ...facts, authenticator_data: response.authenticatorData, signature: response.signature, user_handle: response.userHandle ?? "" };
    } catch (error) {
      throw new Error(error.name === "InvalidStateError" ? _("This device has a passkey for you already.") : _("No passkey was used. Try again."));
    }
  }

  async function submit(event) {
    const { target: form, submitter } = event;
    const answer = form.elements.answer;
    if (event.defaultPrevented || answer.value) return;
    event.preventDefault();
    const status = form.querySelector("[role=status]");
    submitter.disabled = true;
    try {
      const signed = JSON.stringify(await sign(await read(form, submitter)));
      submitter.disabled = false;
      answer.value = signed;
      form.requestSubmit(submitter);
    } catch (error) {
      submitter.disabled = false;
      status.textContent = error.message;
    }
  }

  for (const form of document.querySelectorAll("form[data-options]")) {
    form.hidden = false;
    form.addEventListener("submit", submit);
  }
  // A page that a browser goes back to has an answer that was used.
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-options]")) form.elements.answer.value = "";
  });
})();
