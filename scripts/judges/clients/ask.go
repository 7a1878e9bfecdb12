// Makes the requests listed on stdin with Go's net/http, and prints the result of each (scripts/judges/cases.mjs).
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

func main() {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		parts := strings.Split(lines.Text(), "\t")
		result, err := ask(transport, parts)
		if err != nil {
			result = "error: " + strings.ReplaceAll(err.Error(), os.Args[1], "")
		}
		fmt.Printf("%s\t%s\n", parts[0], result)
	}
}

func ask(transport *http.Transport, parts []string) (string, error) {
	method, path, upload, flags, headers := parts[1], parts[2], parts[3], parts[4], parts[5]
	var body io.Reader
	if upload != "-" {
		size, _ := strconv.Atoi(upload)
		body = bytes.NewReader(bytes.Repeat([]byte("x"), size))
		if strings.Contains(flags, "chunked") {
			body = struct{ io.Reader }{body}
		}
	}
	request, err := http.NewRequest(method, os.Args[1]+path, body)
	if err != nil {
		return "", err
	}
	// Go's default value depends on the version of HTTP.
	request.Header.Set("User-Agent", "Go")
	for _, line := range strings.Split(headers, "|") {
		if name, value, found := strings.Cut(line, ": "); found {
			request.Header.Set(name, value)
		}
	}
	if strings.Contains(flags, "expect") {
		request.Header.Set("Expect", "100-continue")
	}
	client := &http.Client{Transport: transport}
	if !strings.Contains(flags, "follow") {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	var fields []string
	for name, values := range answer.Header {
		for _, value := range values {
			fields = append(fields, name+": "+value)
		}
	}
	for name, values := range answer.Trailer {
		fields = append(fields, "(behind) "+name+": "+strings.Join(values, ", "))
	}
	return fmt.Sprintf("%d\t%d\t%x\t%s", answer.StatusCode, len(content), sha256.Sum256(content), strings.Join(fields, "\x01")), nil
}
