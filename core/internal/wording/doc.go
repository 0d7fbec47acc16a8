// Package wording describes accesses and permission requests to the user.
package wording
