// Receives webhooks on port PORT and reports which are genuine by WEBHOOK_SECRET. Standard library only: go run ./examples/go/verify/main.go
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

type event struct {
	Event string `json:"event"`
	UUID  string `json:"uuid"`
}

// The body as received. False if it is not genuine or more than five minutes old.
func verified(body []byte, headers http.Header, secret string) bool {
	timestamp := headers.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	// Anybody could sign with an empty secret.
	if err != nil || len(key) < 16 {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(headers.Get("webhook-id") + "." + timestamp + "."))
	mac.Write(body)
	wanted := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	for _, signature := range strings.Fields(headers.Get("webhook-signature")) {
		if hmac.Equal(wanted, []byte(signature)) {
			return true
		}
	}
	return false
}

func receive(answer http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(answer, request.Body, 1<<20))
	var got event
	if err != nil || !verified(body, request.Header, os.Getenv("WEBHOOK_SECRET")) || json.Unmarshal(body, &got) != nil {
		answer.WriteHeader(http.StatusBadRequest)
		return
	}
	answer.WriteHeader(http.StatusNoContent)
	log.Println(got.Event, got.UUID)
}

func main() {
	if os.Getenv("WEBHOOK_SECRET") == "" {
		log.Fatal("WEBHOOK_SECRET is missing")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		log.Fatal(err)
	}
	log.Println("http://" + listener.Addr().String())
	log.Fatal(http.Serve(listener, http.HandlerFunc(receive)))
}
