// Package permission is the command agent permissions: inspect, test and audit
// permission rules.
package permission
