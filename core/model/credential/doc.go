// Package credential gets short-lived tokens from command-line programs in which
// the user is signed in: gh, az and gcloud. Tokens are requested when needed, and
// cached until they expire.
package credential
