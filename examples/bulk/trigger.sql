-- What stock-statement needs beside schema.sql: every INSERT INTO sale decrements the stock by itself.
-- Not for stock-bulk, which decrements it too.

CREATE FUNCTION decrement_stock() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Locked in one order by everyone, so that batches that overlap cannot deadlock.
    PERFORM FROM stock WHERE item IN (SELECT item FROM new_sale) ORDER BY item FOR NO KEY UPDATE;
    -- Summed first: an UPDATE touches each row once, however many sales name it.
    UPDATE stock SET quantity = stock.quantity - sold.quantity
    FROM (SELECT item, sum(quantity) AS quantity FROM new_sale GROUP BY item) AS sold
    WHERE stock.item = sold.item;
    RETURN NULL;
END $$;

CREATE TRIGGER sale_decrements_stock AFTER INSERT ON sale
    REFERENCING NEW TABLE AS new_sale
    FOR EACH STATEMENT EXECUTE FUNCTION decrement_stock();
