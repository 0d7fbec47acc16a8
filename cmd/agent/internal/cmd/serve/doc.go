// Package serve is agent serve, which runs sessions for other programs and other
// machines, and agent worker, which adds a machine to a service.
package serve
