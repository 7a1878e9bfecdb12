// A MongoDB-protocol server for the tests: FerretDB's embeddable package on its SQLite backend.
// It reads the variables of FerretDB's own command, so that command can stand in for this one.
package main

import (
	"context"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	address, url := os.Getenv("FERRETDB_LISTEN_ADDR"), os.Getenv("FERRETDB_SQLITE_URL")
	if address == "" || url == "" {
		log.Fatal("set FERRETDB_LISTEN_ADDR to host:port and FERRETDB_SQLITE_URL to file:/folder/")
	}
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: address},
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Handler:   "sqlite",
		SQLiteURL: url,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := server.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
