// Package readme holds the README to its word: its program is compiled and run, and so is every command it shows.
package readme
