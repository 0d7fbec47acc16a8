// Package permission is the command agent permissions, which shows and tests the
// permission rules.
package permission
