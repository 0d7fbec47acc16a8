// Package dashboard runs the web page of all sessions in the background: one process for
// each user, which [Up] starts and [Down] ends.
package dashboard
