-- Money to play with: a till, and ten shops that have none. What is there already stays.

INSERT INTO account (id, balance)
VALUES ('till', 1000000)
ON CONFLICT DO NOTHING;

INSERT INTO account (id, balance)
SELECT 'shop-' || number, 0 FROM generate_series(0, 9) AS number
ON CONFLICT DO NOTHING;
