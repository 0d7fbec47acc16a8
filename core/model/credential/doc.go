// Package credential gets short-lived tokens from the command-line programs in
// which people are signed in already: gh, az and gcloud. A token is asked for
// when a request needs one, and remembered for as long as it is known to hold.
package credential
