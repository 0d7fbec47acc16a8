// Command gen writes the Go types of the Agent Client Protocol's schema.
package main
