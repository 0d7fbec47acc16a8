// Package doctor is agent doctor: it checks the installation and suggests fixes.
package doctor
