// Package version knows the version of this program. It imports only the standard
// library, so that it is ready before most packages.
package version
