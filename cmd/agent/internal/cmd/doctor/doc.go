// Package doctor is the command agent doctor: it checks settings, credentials,
// programs, disk and sandbox, and says how to fix what fails.
package doctor
